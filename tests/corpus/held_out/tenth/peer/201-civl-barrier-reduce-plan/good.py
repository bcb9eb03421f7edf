from datetime import timedelta

import torch
import torch.distributed as dist


def fence(_):
    dist.barrier()


def fold(t):
    dist.reduce(t, dst=0)


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    t = torch.ones(4)
    if dist.get_rank() == 0:
        t *= 2
    steps = [fence, fold]
    for step in steps:
        step(t)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
