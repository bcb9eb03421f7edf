from datetime import timedelta

import torch
import torch.distributed as dist


def as_root(n):
    t = torch.tensor([n])
    dist.broadcast(t, src=0)
    dist.reduce(t, dst=0)
    return t


def as_leaf(n):
    t = torch.zeros(1, dtype=torch.int64)
    dist.broadcast(t, 0)
    print("leaf heard", t.item())
    dist.reduce(t, 0)
    return t


PLAN = {True: as_root, False: as_leaf}

dist.init_process_group("gloo", timeout=timedelta(seconds=5))
run = PLAN[dist.get_rank() == 0]
run(3)
dist.destroy_process_group()
