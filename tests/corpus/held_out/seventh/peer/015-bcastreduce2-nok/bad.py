from datetime import timedelta

import torch
import torch.distributed as dist


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    rank, procs = dist.get_rank(), dist.get_world_size()
    num = torch.tensor([3 if rank == 0 else 0])
    dist.broadcast(num, src=0)
    recv = num.clone()
    dist.all_reduce(recv)
    if rank != procs - 1:
        dist.reduce(recv, dst=0)
    dist.all_reduce(num)
    print(rank, num.item(), recv.item())
    dist.destroy_process_group()


main()
