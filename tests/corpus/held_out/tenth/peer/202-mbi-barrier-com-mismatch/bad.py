from datetime import timedelta

import torch.distributed as dist

dist.init_process_group("gloo", timeout=timedelta(seconds=5))
everyone = list(range(dist.get_world_size()))
copy = dist.new_group(everyone)
where = None if dist.get_rank() == 0 else copy
dist.barrier(group=where)
dist.destroy_process_group()
