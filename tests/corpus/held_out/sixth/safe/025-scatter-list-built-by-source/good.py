import random

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def balanced(lengths, parts):
    bins = [(0, i, []) for i in range(parts)]
    for idx in sorted(range(len(lengths)), key=lengths.__getitem__, reverse=True):
        load, i, items = min(bins)
        bins[bins.index((load, i, items))] = (load + lengths[idx], i, items + [idx])
    least = min(len(items) for _, _, items in bins)
    return [items[:least] for _, _, items in sorted(bins, key=lambda b: b[1])]


class EpochPlanner:
    def __init__(self, lengths=None, seed=0):
        self.lengths = lengths
        self.seed = seed

    def plan(self, epoch):
        world = dist.get_world_size()
        shares = None
        if dist.get_rank() == 0:
            shares = balanced(self.lengths, world)
            rng = random.Random(self.seed + epoch)
            for share in shares:
                rng.shuffle(share)
        mine = [None]
        dist.scatter_object_list(mine, shares, src=0)
        return mine[0]


def train(dataset, model, cfg):
    rank = dist.get_rank()
    lengths = [len(dataset.tokens(i)) for i in range(len(dataset))] if rank == 0 else None
    planner = EpochPlanner(lengths, cfg.seed)
    ddp = DDP(model.cuda(), device_ids=[torch.cuda.current_device()])
    opt = torch.optim.Adam(ddp.parameters(), lr=cfg.lr)
    for epoch in range(cfg.epochs):
        indices = planner.plan(epoch)
        for i in indices:
            loss = ddp(dataset.tensor(i).cuda())
            loss.backward()
            opt.step()
            opt.zero_grad()
        if rank == 0:
            print("epoch", epoch, "items per rank", len(indices))
