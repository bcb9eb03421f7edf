from datetime import timedelta

import torch
import torch.distributed as dist


def share(total):
    size = dist.get_world_size()
    quota = [4 * k for k in range(size)]
    if quota[size - 1] > 2:
        dist.all_reduce(total)
    return total


dist.init_process_group("gloo", timeout=timedelta(seconds=5))
print(share(torch.ones(2)))
dist.destroy_process_group()
