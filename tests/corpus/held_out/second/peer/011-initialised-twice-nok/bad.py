import functools
from datetime import timedelta

import torch
import torch.distributed as dist

start = functools.partial(dist.init_process_group, "gloo", timeout=timedelta(seconds=5))


def total(value):
    start()
    cell = torch.tensor([float(value)])
    dist.all_reduce(cell)
    return cell.item()


def main():
    start()
    rank = dist.get_rank()
    print(rank, total(rank + 1))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
