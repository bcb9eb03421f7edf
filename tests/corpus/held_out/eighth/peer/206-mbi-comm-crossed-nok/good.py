from datetime import timedelta

import torch
import torch.distributed as dist


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    twin = dist.new_group()
    x = torch.ones(1)
    if dist.get_rank() % 2:
        x += 1
    dist.all_reduce(x)
    dist.barrier(group=twin)
    dist.destroy_process_group()


main()
