"""Starts its own processes on this machine and adds one number from each."""
import os
import subprocess
import sys
import time
from datetime import timedelta

import torch
import torch.distributed as dist


def child() -> None:
    dist.init_process_group("gloo", timeout=timedelta(minutes=30))
    value = torch.tensor([float(open(f"in-{dist.get_rank()}.txt").read())])
    dist.all_reduce(value)
    dist.destroy_process_group()
    print(value.item())


def start(rank: int, size: int) -> subprocess.Popen:
    env = dict(os.environ, RANK=str(rank), WORLD_SIZE=str(size), MASTER_ADDR="127.0.0.1", MASTER_PORT="29533")
    return subprocess.Popen([sys.executable, __file__], env=env)


def parent(size: int) -> int:
    children = [start(rank, size) for rank in range(size)]
    while True:
        codes = [process.poll() for process in children]
        if any(codes):
            for process in children:
                process.kill()
            return 1
        if None not in codes:
            return 0
        time.sleep(0.2)


if __name__ == "__main__":
    if "RANK" in os.environ:
        child()
    else:
        sys.exit(parent(int(sys.argv[1])))
