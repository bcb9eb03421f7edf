from datetime import timedelta

import torch
import torch.distributed as dist

dist.init_process_group("gloo", timeout=timedelta(seconds=5))
me, world = dist.get_rank(), dist.get_world_size()


def collect(value, root):
    shelf = None
    if me == 0:
        shelf = [torch.zeros_like(value) for _ in range(world)]
    dist.gather(value, gather_list=shelf, dst=root)
    return shelf


parts = collect(torch.full((3,), float(me)), root=world - 1)
if parts is not None:
    print([p.sum().item() for p in parts])
dist.destroy_process_group()
