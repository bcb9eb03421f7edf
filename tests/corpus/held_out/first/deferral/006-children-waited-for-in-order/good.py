#!/usr/bin/env python
"""Start one training process per device: launch.py --procs 8 train.py --lr 1e-3"""
import argparse
import os
import signal
import socket
import subprocess
import sys
import time


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def child_env(rank, size, port):
    env = dict(os.environ)
    env.update(
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT=str(port),
        RANK=str(rank),
        LOCAL_RANK=str(rank),
        WORLD_SIZE=str(size),
    )
    env.setdefault("OMP_NUM_THREADS", "1")
    return env


class Launcher:
    def __init__(self, size, command):
        self.size = size
        self.command = command
        self.children = []

    def start(self):
        port = free_port()
        for rank in range(self.size):
            env = child_env(rank, self.size, port)
            self.children.append(subprocess.Popen(self.command, env=env))

    def stop(self, *_):
        for child in self.children:
            if child.poll() is None:
                child.terminate()

    def wait(self):
        while True:
            codes = [child.poll() for child in self.children]
            failed = [code for code in codes if code]
            if failed:
                self.stop()
                return failed[0]
            if None not in codes:
                return 0
            time.sleep(0.5)


def main():
    cli = argparse.ArgumentParser(description=__doc__)
    cli.add_argument("--procs", type=int, default=2)
    cli.add_argument("script")
    cli.add_argument("rest", nargs=argparse.REMAINDER)
    opts = cli.parse_args()
    launcher = Launcher(opts.procs, [sys.executable, "-u", opts.script, *opts.rest])
    signal.signal(signal.SIGTERM, launcher.stop)
    launcher.start()
    sys.exit(launcher.wait())


if __name__ == "__main__":
    main()
