from datetime import timedelta

import torch
import torch.distributed as dist


def lead(t):
    t.fill_(7)
    dist.broadcast(t, src=0)


def follow(t):
    dist.broadcast(t, src=0)


dist.init_process_group("gloo", timeout=timedelta(seconds=5))
roles = {True: lead, False: follow}
t = torch.zeros(2)
roles[dist.get_rank() == 0](t)
assert t[0].item() == 7
dist.destroy_process_group()
