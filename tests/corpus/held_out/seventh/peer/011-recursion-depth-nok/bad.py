from datetime import timedelta

import torch
import torch.distributed as dist


def descend(depth, acc):
    if depth == 0:
        return acc
    dist.all_reduce(acc)
    return descend(depth - 1, acc)


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    out = descend(2, torch.ones(1))
    out = descend(1 + dist.get_rank(), out)
    print(out)
    dist.destroy_process_group()


main()
