from datetime import timedelta

import torch
import torch.distributed as dist

dist.init_process_group("gloo", timeout=timedelta(seconds=5))
x = torch.ones(16)
work = dist.all_reduce(x, async_op=True)
work.wait()
if dist.get_rank() == 0:
    work.wait()
    print(x[0].item())
dist.destroy_process_group()
