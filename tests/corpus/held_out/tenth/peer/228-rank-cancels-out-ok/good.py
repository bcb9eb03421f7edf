from datetime import timedelta

import torch
import torch.distributed as dist

dist.init_process_group("gloo", timeout=timedelta(seconds=5))
rank, size = dist.get_rank(), dist.get_world_size()
t = torch.zeros(1)
if rank // size:
    dist.broadcast(t, src=0)
if rank + 1 > 0:
    dist.all_reduce(t)
dist.destroy_process_group()
