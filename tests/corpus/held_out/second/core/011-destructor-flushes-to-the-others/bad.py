"""Counts of rare events, kept while a phase lasts."""
from datetime import timedelta

import torch
import torch.distributed as dist


class Recorder:
    def __init__(self, name):
        self.name, self.count, self.peers = name, torch.zeros(1), []

    def tick(self):
        self.count += 1

    def link(self, other):
        self.peers.append(other)
        other.peers.append(self)

    def flush(self):
        dist.all_reduce(self.count)
        if dist.get_rank() == 0:
            print(self.name, int(self.count))

    def __del__(self):
        self.flush()


def phase(index, gen):
    near, far = Recorder(f"near-{index}"), Recorder(f"far-{index}")
    near.link(far)
    for _ in range(50):
        value = torch.randn(1, generator=gen).abs().item()
        if value > 2:
            far.tick()
        elif value < 0.1:
            near.tick()


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    gen = torch.Generator().manual_seed(dist.get_rank())
    for index in range(4):
        phase(index, gen)
        load = torch.rand(1, generator=gen)
        dist.all_reduce(load)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
