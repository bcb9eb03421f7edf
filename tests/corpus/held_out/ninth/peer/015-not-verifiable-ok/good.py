from datetime import timedelta

import torch.distributed as dist

dist.init_process_group("gloo", timeout=timedelta(seconds=5))
rank = dist.get_rank()
if dist.get_world_size() < 2:
    raise SystemExit("This test needs at least 2 processes")
if rank % 2:
    dist.barrier()
if not rank % 2:
    dist.barrier()
dist.destroy_process_group()
