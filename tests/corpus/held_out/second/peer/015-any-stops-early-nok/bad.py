from datetime import timedelta

import torch
import torch.distributed as dist


def attempt(number, rank):
    load = torch.tensor([float(number)])
    dist.all_reduce(load)
    return number * (rank + 1) >= 4


def search(limit):
    rank = dist.get_rank()
    return any(attempt(i, rank) for i in range(limit))


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    found = search(limit=6)
    dist.barrier()
    print(found)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
