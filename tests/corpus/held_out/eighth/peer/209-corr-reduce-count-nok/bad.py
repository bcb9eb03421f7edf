from datetime import timedelta

import torch
import torch.distributed as dist


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    rank = dist.get_rank()
    part = torch.ones(8 // (rank + 1))
    dist.reduce(part, dst=0)
    if rank == 0:
        print(part)
    dist.destroy_process_group()


main()
