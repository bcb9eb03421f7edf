from datetime import timedelta

import torch
import torch.distributed as dist


class HostCache:
    """Copies finished blocks to host memory; all ranks release a block together."""

    def __init__(self, slots):
        self.free = slots
        self.pending = []

    def write(self, block):
        if self.free == 0:
            return False
        self.free -= 1
        self.pending.append({"block": block, "polls": 0})
        return True

    def poll(self):
        if not self.pending:
            return 0
        for job in self.pending:
            job["polls"] += 1
        ready = torch.tensor([sum(job["polls"] > 2 for job in self.pending)])
        dist.all_reduce(ready, op=dist.ReduceOp.MIN)
        for _ in range(ready.item()):
            self.pending.pop(0)
            self.free += 1
        return ready.item()


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    rank = dist.get_rank()
    cache = HostCache(slots=8 if rank == 0 else 0)  # the second host is short of memory
    released = 0
    for tick in range(30):
        if tick % 4 == 0:
            cache.write(tick)
        released += cache.poll()
    print(f"rank {rank} released {released}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
