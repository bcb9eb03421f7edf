from datetime import timedelta

import torch
import torch.distributed as dist


def split(colour):
    size = dist.get_world_size()
    mates = [r for r in range(size) if r % 2 == colour]
    return dist.new_group(mates)


dist.init_process_group("gloo", timeout=timedelta(seconds=10))
half = split(dist.get_rank() % 2)
x = torch.ones(1)
dist.all_reduce(x, group=half)
print(x.item())
dist.destroy_process_group()
