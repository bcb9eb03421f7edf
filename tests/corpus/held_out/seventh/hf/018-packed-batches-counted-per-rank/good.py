import numpy as np
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Sampler


class PackedBatches(Sampler):
    def __init__(self, lengths, budget, rank, world, seed=0):
        self.lengths, self.budget = lengths, budget
        self.rank, self.world, self.seed, self.epoch = rank, world, seed, 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def pack(self, order):
        bins, room = [[]], self.budget
        for i in order:
            if self.lengths[i] > room and bins[-1]:
                bins.append([])
                room = self.budget
            bins[-1].append(int(i))
            room -= self.lengths[i]
        return bins

    def __iter__(self):
        order = np.random.default_rng(self.seed + self.epoch).permutation(len(self.lengths))
        bins = self.pack(order)
        usable = len(bins) // self.world * self.world
        yield from bins[self.rank : usable : self.world]


def train(net, opt, data, lengths, rank, world, collate, epochs):
    sampler = PackedBatches(lengths, 8192, rank, world)
    loader = DataLoader(data, batch_sampler=sampler, collate_fn=collate)
    model = DDP(net.to(rank), device_ids=[rank])
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        for batch in loader:
            model(**batch).loss.backward()
            opt.step()
            opt.zero_grad()
