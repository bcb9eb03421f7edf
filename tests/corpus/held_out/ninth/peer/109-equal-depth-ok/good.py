from datetime import timedelta

import torch.distributed as dist


def down(n):
    if n > 0:
        dist.barrier()
        down(n - 1)


def up(i, n):
    if i == n:
        return
    dist.barrier()
    up(i + 1, n)


dist.init_process_group("gloo", timeout=timedelta(seconds=5))
if dist.get_rank() % 2:
    down(4)
else:
    up(0, 4)
dist.destroy_process_group()
