"""Start one training process per slot on this machine."""
import argparse
import os
import socket
import subprocess
import sys


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
    for child in children:
        child.wait()
    print(f"all {len(children)} processes finished")


if __name__ == "__main__":
    main()
