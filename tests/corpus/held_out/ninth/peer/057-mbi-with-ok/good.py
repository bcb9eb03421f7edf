from datetime import timedelta

import torch.distributed as dist


class Fence:
    def __enter__(self):
        return dist.get_rank()

    def __exit__(self, *exc):
        dist.barrier()
        return False


dist.init_process_group("gloo", timeout=timedelta(seconds=5))
with Fence() as rank:
    if rank == 0:
        print("saving")
dist.destroy_process_group()
