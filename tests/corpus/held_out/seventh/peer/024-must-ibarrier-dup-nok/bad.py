from datetime import timedelta

import torch.distributed as dist

LIMIT = timedelta(seconds=5)

dist.init_process_group("gloo", timeout=LIMIT)
dup = dist.new_group(timeout=LIMIT)
where = dup if dist.get_rank() == 0 else dist.group.WORLD
work = dist.barrier(group=where, async_op=True)
work.wait()
dist.destroy_process_group()
