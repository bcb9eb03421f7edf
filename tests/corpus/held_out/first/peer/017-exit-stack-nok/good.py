import os
from contextlib import ExitStack
from datetime import timedelta

import torch
import torch.distributed as dist


def epoch(rank):
    loss = torch.tensor([1.0 + rank])
    with ExitStack() as stack:
        stack.callback(dist.barrier)
        if rank == 0:
            log = stack.enter_context(open(os.devnull, "w"))
            log.write("epoch\n")
        dist.all_reduce(loss)
    dist.all_reduce(loss)
    return loss.item()


if __name__ == "__main__":
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    epoch(dist.get_rank())
    dist.destroy_process_group()
