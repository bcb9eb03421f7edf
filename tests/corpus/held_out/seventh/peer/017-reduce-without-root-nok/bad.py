from datetime import timedelta

import torch
import torch.distributed as dist

dist.init_process_group("gloo", timeout=timedelta(seconds=5))
score = torch.full((1,), 4.0)
if dist.get_rank() > 0:
    dist.reduce(score, dst=0, op=dist.ReduceOp.SUM)
else:
    print("total", score.item())
dist.destroy_process_group()
