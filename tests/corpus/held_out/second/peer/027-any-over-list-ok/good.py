from datetime import timedelta

import torch
import torch.distributed as dist


def attempt(number, rank):
    load = torch.tensor([float(number)])
    dist.all_reduce(load)
    return number * (rank + 1) >= 4


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    rank = dist.get_rank()
    found = any([attempt(i, rank) for i in range(6)])
    dist.barrier()
    print(rank, found)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
