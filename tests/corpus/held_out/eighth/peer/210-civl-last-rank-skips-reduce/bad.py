from datetime import timedelta

import torch
from torch.distributed import all_reduce, destroy_process_group, get_rank, get_world_size, init_process_group, reduce

init_process_group("gloo", timeout=timedelta(seconds=5))
last = get_world_size() - 1
num = torch.tensor([3.0])
all_reduce(num)
if get_rank() != last:
    reduce(num, dst=0)
all_reduce(num)
print(num.item())
destroy_process_group()
