import sys
from datetime import timedelta

import torch
import torch.distributed as dist


def label(count):
    count = dist.get_rank()
    return f"worker-{count}"


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    count = len(sys.argv)
    name = label(count)
    beat = torch.ones(1)
    while count > 0:
        dist.all_reduce(beat)
        count -= 1
    print(name, beat.item())
    dist.destroy_process_group()


main()
