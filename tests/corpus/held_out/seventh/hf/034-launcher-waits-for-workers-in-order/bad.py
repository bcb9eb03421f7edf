import argparse
import os
import subprocess
import sys


def start_workers(script, rest, nproc, port):
    workers = []
    for rank in range(nproc):
        env = dict(
            os.environ, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(nproc),
            MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port),
        )
        workers.append(subprocess.Popen([sys.executable, "-u", script, *rest], env=env))
    return workers


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--nproc", type=int, required=True)
    parser.add_argument("--port", type=int, default=29500)
    parser.add_argument("script")
    parser.add_argument("rest", nargs=argparse.REMAINDER)
    args = parser.parse_args()
    workers = start_workers(args.script, args.rest, args.nproc, args.port)
    for worker in workers:
        code = worker.wait()
        if code != 0:
            sys.exit(code)


if __name__ == "__main__":
    main()
