from datetime import timedelta

import torch.distributed as dist


def describe(rank):
    try:
        if rank == 0:
            return "chief"
        label = f"worker {rank}"
    finally:
        dist.barrier()
    return label


if __name__ == "__main__":
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    print(describe(dist.get_rank()))
    dist.destroy_process_group()
