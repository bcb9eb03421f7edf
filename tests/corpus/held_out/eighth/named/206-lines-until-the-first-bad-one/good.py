"""Average numbers that each process reads from its own file."""
import sys
from datetime import timedelta

import torch
import torch.distributed as dist
from spmdguard import raise_if_deferred_error, rank_local, sync_should_stop


@rank_local
def numbers(path, count):
    with open(path, encoding="utf-8") as f:
        for _ in range(count):
            yield float(f.readline())


def average(path, count):
    mean = torch.zeros(1)
    own = iter(numbers(path, count))
    for _ in range(count):
        row = torch.tensor([next(own, 0.0)])
        dist.all_reduce(row)
        mean += row / (count * dist.get_world_size())
        if sync_should_stop():
            break
    return mean


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=40))
    mean = average(f"{sys.argv[1]}.{dist.get_rank()}", count=50)
    dist.destroy_process_group()
    raise_if_deferred_error()
    print(mean.item())


if __name__ == "__main__":
    main()
