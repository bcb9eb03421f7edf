from datetime import timedelta

import torch
import torch.distributed as dist


def run(name, t):
    getattr(dist, name)(t, 0)


dist.init_process_group("gloo", timeout=timedelta(seconds=5))
x = torch.ones(5)
run("reduce", x)
run("broadcast", x)
print(x)
dist.destroy_process_group()
