from datetime import timedelta

import torch
import torch.distributed as dist


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    rank, size = dist.get_rank(), dist.get_world_size()
    halves = [dist.new_group(list(range(k, size, 2))) for k in (0, 1)]
    x = torch.ones(1)
    if rank % 2:
        dist.all_reduce(x, group=halves[1])
    else:
        dist.all_reduce(x, group=halves[0])
        dist.barrier(group=halves[0])
    print(rank, x.item())
    dist.barrier()
    dist.destroy_process_group()


main()
