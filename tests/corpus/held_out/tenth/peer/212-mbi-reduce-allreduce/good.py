from datetime import timedelta
from functools import partial

import torch
import torch.distributed as dist


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    loss = torch.rand(1)
    combine = dist.all_reduce
    if dist.get_world_size() > 4:
        combine = partial(dist.reduce, dst=0)
    combine(loss)
    if dist.get_rank() == 0:
        print(loss.item())
    dist.destroy_process_group()


main()
