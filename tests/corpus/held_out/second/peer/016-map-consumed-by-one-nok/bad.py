from datetime import timedelta

import torch
import torch.distributed as dist


def mean(t):
    dist.all_reduce(t)
    return t.item() / dist.get_world_size()


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    rank = dist.get_rank()
    values = [torch.tensor([float(rank + i)]) for i in range(3)]
    means = map(mean, values)
    if rank == 0:
        print(list(means))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
