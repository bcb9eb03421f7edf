import threading
from datetime import timedelta

import torch
import torch.distributed as dist


def job(t):
    dist.all_reduce(t)


dist.init_process_group("gloo", timeout=timedelta(seconds=5))
loads = [torch.ones(k) for k in (1, 16, 256)]
for t in loads:
    th = threading.Thread(target=job, args=(t,))
    th.start()
    th.join()
assert all(t[0].item() == dist.get_world_size() for t in loads)
dist.destroy_process_group()
