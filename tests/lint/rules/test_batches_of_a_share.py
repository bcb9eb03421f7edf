"""Samplers whose ``__iter__`` makes batches out of this rank's share: another number of them on each rank."""

from __future__ import annotations

from tests.lint.rules.marked import agree

PACKING = """
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Sampler

class Packed(Sampler):
    def __init__(self, lengths, budget, rank, world):
        self.lengths, self.budget = lengths, budget
        self.rank, self.world = rank, world

    def pack(self, order):
        bins, room = [[]], self.budget
        for i in order:
            if self.lengths[i] > room and bins[-1]:
                bins.append([])
                room = self.budget
            bins[-1].append(int(i))
            room -= self.lengths[i]
        return bins
"""


def test_batches_packed_out_of_a_share() -> None:
    """The share is cut first and packed then: by ``batch_sampler``, by ``sampler``, and where it is looped over."""
    assert agree(
        PACKING
        + """
    def __iter__(self):
        yield from self.pack(range(len(self.lengths))[self.rank :: self.world])

class Looping(Packed):
    def __iter__(self):
        for one in self.pack(range(len(self.lengths))[self.rank :: self.world]):
            yield one

def train(net, data, lengths, rank, world):
    loader = DataLoader(data, batch_sampler=Packed(lengths, 8192, rank, world))
    model = DistributedDataParallel(net.to(rank), device_ids=[rank])
    for batch in loader:  # SPG401
        model(batch).backward()

def evaluate(data, lengths, total):
    sampler = Looping(lengths, 8192, dist.get_rank(), dist.get_world_size())
    for batch in DataLoader(data, sampler=sampler):
        dist.all_reduce(total)  # SPG401

def by_name(items, total, rank, world):
    for item in items[rank::world]:
        dist.all_reduce(total)  # SPG401
""",
        "SPG401",
    )


def test_packed_first_and_shared_out_then() -> None:
    """A multiple of the ranks is shared out; a class that tells its length; steps that are no number of ranks."""
    assert agree(
        PACKING
        + """
    def __iter__(self):
        bins = self.pack(range(len(self.lengths)))
        usable = len(bins) // self.world * self.world
        yield from bins[self.rank : usable : self.world]

class Told(Packed):
    def __len__(self):
        return 100

    def __iter__(self):
        yield from self.pack(range(len(self.lengths))[self.rank :: self.world])

def train(net, data, lengths, rank, world):
    loader = DataLoader(data, batch_sampler=Packed(lengths, 8192, rank, world))
    model = DistributedDataParallel(net.to(rank), device_ids=[rank])
    for batch in loader:
        model(batch).backward()
    for batch in DataLoader(data, batch_sampler=Told(lengths, 8192, rank, world)):
        model(batch).backward()

def of_an_adapter(items, total, rank):
    for item in items[rank:]:
        dist.all_reduce(total)
    for item in items[rank::2]:
        dist.all_reduce(total)
""",
        "SPG401",
    )
