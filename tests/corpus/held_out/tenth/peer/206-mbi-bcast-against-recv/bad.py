from datetime import timedelta

import torch
import torch.distributed as dist

dist.init_process_group("gloo", timeout=timedelta(seconds=5))
me = dist.get_rank()
weights = torch.randn(1 << 16)
token = torch.zeros(1)
if me == 1:
    dist.recv(token, src=0)
dist.broadcast(weights, src=0)
if me == 0:
    dist.send(token, dst=1)
dist.destroy_process_group()
