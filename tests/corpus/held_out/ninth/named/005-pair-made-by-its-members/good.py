"""Halves of a job that exchange within pairs."""
from datetime import timedelta

import torch
import torch.distributed as dist


def pairs(size: int) -> list[list[int]]:
    return [[first, first + 1] for first in range(0, size - 1, 2)]


def partner_group(rank: int, size: int):
    mine = None
    for members in pairs(size):
        group = dist.new_group(members)
        if rank in members:
            mine = group
    return mine


def main():
    dist.init_process_group("gloo", timeout=timedelta(minutes=1))
    rank, size = dist.get_rank(), dist.get_world_size()
    group = partner_group(rank, size)
    value = torch.tensor([float(rank)])
    if group is not None:
        dist.all_reduce(value, group=group)
    dist.all_reduce(value, op=dist.ReduceOp.MAX)
    dist.destroy_process_group()
    print(value.item())


if __name__ == "__main__":
    main()
