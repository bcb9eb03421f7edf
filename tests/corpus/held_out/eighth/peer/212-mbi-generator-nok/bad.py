from datetime import timedelta
from itertools import islice

import torch
import torch.distributed as dist


def rounds(x):
    while True:
        dist.all_reduce(x)
        yield x.item()


dist.init_process_group("gloo", timeout=timedelta(seconds=5))
me = dist.get_rank()
for value in islice(rounds(torch.ones(1)), 2 + me):
    print(me, value)
dist.destroy_process_group()
