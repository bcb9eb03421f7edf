from datetime import timedelta

import torch
import torch.distributed as dist

dist.init_process_group("gloo", timeout=timedelta(seconds=5))
rank, size = dist.get_rank(), dist.get_world_size()
mine, part = torch.full((3,), rank), torch.zeros(3, dtype=torch.int64)
rows = [torch.zeros(3, dtype=torch.int64) for _ in range(size)] if rank == 0 else None
deal = [torch.arange(3) for _ in range(size)] if rank == 0 else None
if rank == 0:
    dist.scatter(part, deal, src=0)
    dist.gather(mine, rows, dst=0)
if rank == 1:
    dist.gather(mine, rows, dst=0)
    dist.scatter(part, deal, src=0)
dist.destroy_process_group()
