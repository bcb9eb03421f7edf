from datetime import timedelta

import torch
import torch.distributed as dist

LIMIT = timedelta(seconds=5)

dist.init_process_group("gloo", timeout=LIMIT)
lead = dist.new_group([0], timeout=LIMIT)
x = torch.ones(2)
dist.all_reduce(x, group=lead)
assert x[0].item() == 1
dist.barrier()
dist.destroy_process_group()
