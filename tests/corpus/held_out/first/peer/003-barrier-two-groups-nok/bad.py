from datetime import timedelta

import torch.distributed as dist

dist.init_process_group("gloo", timeout=timedelta(seconds=5))
world, me = dist.get_world_size(), dist.get_rank()
evens = dist.new_group(list(range(0, world, 2)))
odds = dist.new_group(list(range(1, world, 2)))

if me % 2:
    dist.barrier()
else:
    dist.barrier(group=evens)

print("done", me)
dist.destroy_process_group()
