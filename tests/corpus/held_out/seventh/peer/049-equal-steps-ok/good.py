from datetime import timedelta

import torch
import torch.distributed as dist


def common_length(items):
    n = torch.tensor(len(items))
    dist.all_reduce(n, op=dist.ReduceOp.MIN)
    return int(n)


dist.init_process_group("gloo", timeout=timedelta(seconds=5))
mine = list(range(4 + dist.get_rank()))
acc = torch.zeros(1)
for i in range(common_length(mine)):
    acc += mine[i]
    dist.all_reduce(acc)
print(acc.item())
dist.destroy_process_group()
