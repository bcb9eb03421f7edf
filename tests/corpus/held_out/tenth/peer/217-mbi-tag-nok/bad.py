from datetime import timedelta

import torch
import torch.distributed as dist


def producer(n):
    for step in range(n):
        dist.send(torch.ones(3) * step, dst=1, tag=step)


def consumer(n):
    got = torch.zeros(3)
    for step in range(1, n + 1):
        dist.recv(got, src=0, tag=step)
        print(step, got[0].item())


dist.init_process_group("gloo", timeout=timedelta(seconds=5))
if dist.get_rank() == 0:
    producer(3)
elif dist.get_rank() == 1:
    consumer(3)
dist.destroy_process_group()
