"""Shifts a block around a ring of processes."""
from datetime import timedelta

import torch
import torch.distributed as dist


class Ring:
    def __init__(self):
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        self.after = (self.rank + 1) % self.size
        self.before = (self.rank - 1) % self.size

    def shift(self, block):
        incoming = torch.empty_like(block)
        sending = dist.isend(block, dst=self.after)
        dist.recv(incoming, src=self.before)
        sending.wait()
        return incoming


def main():
    dist.init_process_group("gloo", timeout=timedelta(minutes=2))
    ring = Ring()
    block = torch.full((64, 1024, 1024), float(ring.rank))
    total = block.clone()
    for _ in range(ring.size - 1):
        block = ring.shift(block)
        total += block
    dist.barrier()
    dist.destroy_process_group()
    print(total.mean().item())


if __name__ == "__main__":
    main()
