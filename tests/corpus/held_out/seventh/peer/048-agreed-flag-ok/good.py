from datetime import timedelta

import torch
import torch.distributed as dist


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    rank = dist.get_rank()
    step, stop = 0, torch.zeros(1)
    while not stop.item():
        step += 1
        stop[0] = float(step > 2 + rank)
        dist.all_reduce(stop, op=dist.ReduceOp.MAX)
    dist.barrier()
    print(rank, step)
    dist.destroy_process_group()


main()
