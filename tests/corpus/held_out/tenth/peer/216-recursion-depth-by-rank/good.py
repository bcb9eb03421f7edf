from datetime import timedelta

import torch
import torch.distributed as dist


def refine(grid, depth):
    dist.all_reduce(grid)
    if depth == 0:
        return grid
    return refine(grid / 2, depth - 1)


dist.init_process_group("gloo", timeout=timedelta(seconds=5))
levels = 3 - min(dist.get_world_size(), 2)
print(refine(torch.ones(4), levels))
dist.destroy_process_group()
