"""python launch.py --nproc 4 train.py --config cfg.yaml"""
import argparse
import os
import socket
import subprocess
import sys
import time


def free_port():
    with socket.socket() as s:
        s.bind(("", 0))
        return s.getsockname()[1]


class MultiProcessLauncher:
    def __init__(self, nproc, script, script_args, log_dir):
        self.nproc = nproc
        self.command = [sys.executable, "-u", script, *script_args]
        self.log_dir = log_dir
        self.processes = []
        self.logs = []

    def _environment(self, rank, port):
        env = dict(os.environ)
        env.update(
            MASTER_ADDR="127.0.0.1",
            MASTER_PORT=str(port),
            WORLD_SIZE=str(self.nproc),
            RANK=str(rank),
            LOCAL_RANK=str(rank),
        )
        env.setdefault("OMP_NUM_THREADS", "1")
        return env

    def start(self):
        port = free_port()
        os.makedirs(self.log_dir, exist_ok=True)
        for rank in range(self.nproc):
            log = open(os.path.join(self.log_dir, f"rank{rank}.log"), "w")
            out = None if rank == 0 else log
            self.logs.append(log)
            self.processes.append(
                subprocess.Popen(self.command, env=self._environment(rank, port), stdout=out, stderr=out)
            )

    def join(self):
        alive = list(self.processes)
        while alive:
            time.sleep(0.5)
            codes = [p.poll() for p in self.processes]
            failed = next((c for c in codes if c), None)
            if failed is not None:
                self.terminate()
                return failed
            alive = [p for p, c in zip(self.processes, codes) if c is None]
        return 0

    def terminate(self):
        for process in self.processes:
            if process.poll() is None:
                process.terminate()
        for process in self.processes:
            process.wait()

    def close(self):
        for log in self.logs:
            log.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--nproc", type=int, default=2)
    parser.add_argument("--log-dir", default="logs")
    parser.add_argument("script")
    parser.add_argument("rest", nargs=argparse.REMAINDER)
    args = parser.parse_args()
    launcher = MultiProcessLauncher(args.nproc, args.script, args.rest, args.log_dir)
    began = time.time()
    launcher.start()
    status = launcher.join()
    launcher.close()
    if status != 0:
        sys.exit(f"a worker failed with status {status}; see {args.log_dir}")
    print(f"training finished in {time.time() - began:.0f} s")


if __name__ == "__main__":
    main()
