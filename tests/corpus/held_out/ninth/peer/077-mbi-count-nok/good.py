from datetime import timedelta

import torch
from torch.distributed import all_reduce, destroy_process_group, get_rank, init_process_group

init_process_group("gloo", timeout=timedelta(seconds=5))
count = 4
v = torch.ones(count)
all_reduce(v)
print(v.sum().item())
destroy_process_group()
