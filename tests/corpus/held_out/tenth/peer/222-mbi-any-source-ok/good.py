from datetime import timedelta

import torch
import torch.distributed as dist

dist.init_process_group("gloo", timeout=timedelta(seconds=5))
rank, size = dist.get_rank(), dist.get_world_size()
cell = torch.tensor([rank])
if rank:
    dist.send(cell, dst=0)
else:
    seen = []
    while len(seen) < size - 1:
        who = dist.recv(cell)
        assert cell.item() == who
        seen.append(who)
    assert sorted(seen) == list(range(1, size))
dist.barrier()
dist.destroy_process_group()
