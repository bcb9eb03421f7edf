from datetime import timedelta

import torch.distributed as dist


class Session:
    def __init__(self):
        self._rank = dist.get_rank()
        self.seen = 0

    @property
    def leads(self):
        return self._rank == 0

    def observe(self, n):
        self.seen += n

    def close(self):
        rows = [None] * dist.get_world_size()
        dist.all_gather_object(rows, self.seen)
        if self.leads:
            print(sum(rows))


dist.init_process_group("gloo", timeout=timedelta(seconds=5))
session = Session()
session.observe(3)
session.close()
dist.destroy_process_group()
