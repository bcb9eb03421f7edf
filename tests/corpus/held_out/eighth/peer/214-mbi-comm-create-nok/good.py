from datetime import timedelta

import torch
import torch.distributed as dist


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    me = dist.get_rank()
    evens = list(range(0, dist.get_world_size(), 2))
    t = torch.ones(1)
    team = dist.new_group(evens)
    if me in evens:
        dist.all_reduce(t, group=team)
    dist.barrier()
    dist.destroy_process_group()


main()
