from datetime import timedelta

import torch
import torch.distributed as dist


def trade(mine, theirs):
    if dist.get_rank() == 0:
        dist.broadcast(mine, src=0)
        dist.broadcast(theirs, src=1)
    else:
        dist.broadcast(theirs, src=1)
        dist.broadcast(mine, src=0)


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    a, b = torch.zeros(8), torch.ones(8)
    trade(a, b)
    dist.destroy_process_group()


main()
