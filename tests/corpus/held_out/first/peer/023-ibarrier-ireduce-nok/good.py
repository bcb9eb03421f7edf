from datetime import timedelta

import torch
import torch.distributed as dist


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    rank = dist.get_rank()
    local = torch.tensor([sum(range(rank + 1))])
    first = dist.reduce(local, dst=0, async_op=True)
    second = dist.barrier(async_op=True)
    if rank % 2:
        second.wait()
        first.wait()
    else:
        first.wait()
        second.wait()
    if rank == 0:
        print(local.item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
