from datetime import timedelta

import torch.distributed as dist


def default():
    return 1


dist.init_process_group("gloo", timeout=timedelta(seconds=5))
if dist.get_rank():
    print("follower")
    val = default()
else:
    print("leader")
    val = default()
if val:
    dist.barrier()
dist.destroy_process_group()
