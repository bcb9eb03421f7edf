from datetime import timedelta

import torch
import torch.distributed as dist

dist.init_process_group("gloo", timeout=timedelta(seconds=5))
rank = dist.get_rank()
num = torch.full((1,), 3 + rank)
if rank == 0:
    dist.barrier()
    dist.reduce(num, dst=0, op=dist.ReduceOp.MAX)
    print(num.item())
else:
    dist.barrier()
    dist.reduce(num, dst=0, op=dist.ReduceOp.MAX)
dist.destroy_process_group()
