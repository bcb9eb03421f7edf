from datetime import timedelta

import torch
import torch.distributed as dist


def receive(num):
    dist.broadcast(num, src=0)
    return num


def contribute(num):
    dist.reduce(num, dst=0, op=dist.ReduceOp.SUM)


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    rank = dist.get_rank()
    num = torch.tensor([3 if rank == 0 else 0])
    if rank % 2 == 0:
        contribute(receive(num))
    else:
        dist.broadcast(num, src=0)
        dist.reduce(num, dst=0, op=dist.ReduceOp.SUM)
    if rank == 0:
        assert num.item() == 3 * dist.get_world_size()
    dist.destroy_process_group()


main()
