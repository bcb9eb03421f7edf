from datetime import timedelta

import torch.distributed as dist


def f():
    dist.barrier()


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    rank = dist.get_rank()
    var = rank + 1
    if rank % 2:
        if var % 2:
            dist.barrier()
        else:
            dist.barrier()
    else:
        if var % 2:
            f()
    print("Bye from proc", rank)
    dist.destroy_process_group()


main()
