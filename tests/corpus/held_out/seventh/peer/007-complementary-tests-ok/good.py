from datetime import timedelta

import torch.distributed as dist


def fence(rank):
    if rank % 2 == 1:
        dist.barrier()
    print("middle", rank)
    if rank % 2 == 0:
        dist.barrier()


if __name__ == "__main__":
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    fence(dist.get_rank())
    dist.destroy_process_group()
