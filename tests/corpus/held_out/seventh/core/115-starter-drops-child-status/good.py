"""Start one training process per slot on this machine."""
import argparse
import os
import socket
import subprocess
import sys
import time


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def start(args):
    env = dict(os.environ, MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free_port()))
    env["WORLD_SIZE"] = str(args.slots)
    children = []
    for slot in range(args.slots):
        env["RANK"] = env["LOCAL_RANK"] = str(slot)
        cmd = [sys.executable, "-u", args.script, *args.rest]
        children.append(subprocess.Popen(cmd, env=env))
    return children


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--slots", type=int, default=2)
    parser.add_argument("script")
    parser.add_argument("rest", nargs=argparse.REMAINDER)
    children = start(parser.parse_args())
    while True:
        codes = [child.poll() for child in children]
        if any(codes):
            break
        if None not in codes:
            print(f"all {len(children)} processes finished")
            return
        time.sleep(0.2)
    for child in children:
        if child.poll() is None:
            child.kill()
        child.wait()
    sys.exit(f"exit codes {codes}, the rest was stopped")


if __name__ == "__main__":
    main()
