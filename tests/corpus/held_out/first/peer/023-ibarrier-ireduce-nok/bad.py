from datetime import timedelta

import torch
import torch.distributed as dist


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    rank = dist.get_rank()
    local = torch.tensor([sum(range(rank + 1))])
    if rank % 2:
        first = dist.barrier(async_op=True)
        second = dist.reduce(local, dst=0, async_op=True)
    else:
        first = dist.reduce(local, dst=0, async_op=True)
        second = dist.barrier(async_op=True)
    first.wait()
    second.wait()
    if rank == 0:
        print(local.item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
