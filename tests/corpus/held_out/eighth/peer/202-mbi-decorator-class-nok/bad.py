from datetime import timedelta

import torch
import torch.distributed as dist


class OnRank:
    def __init__(self, wanted):
        self.wanted = wanted

    def __call__(self, fn):
        def inner(*args):
            if dist.get_rank() == self.wanted:
                return fn(*args)

        return inner


@OnRank(0)
def show(loss):
    dist.all_reduce(loss)
    print("loss", loss.item())


dist.init_process_group("gloo", timeout=timedelta(seconds=5))
show(torch.ones(1))
dist.destroy_process_group()
