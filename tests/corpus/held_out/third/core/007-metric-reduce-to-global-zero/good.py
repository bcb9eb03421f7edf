import os
from datetime import timedelta

import torch
import torch.distributed as dist


def build_shard_groups(per_node):
    world = dist.get_world_size()
    own = None
    for first in range(0, world, per_node):
        ranks = list(range(first, first + per_node))
        handle = dist.new_group(ranks)
        if dist.get_rank() in ranks:
            own = handle
    return own


class OptimMetrics:
    def __init__(self, process_group):
        self.process_group = process_group

    @torch.no_grad()
    def collect(self, parameters):
        lows, highs, squares = [], [], []
        for p in parameters:
            lows.append(p.min())
            highs.append(p.max())
            squares.append(p.pow(2).sum())
        lows, highs, squares = torch.stack(lows), torch.stack(highs), torch.stack(squares)
        root = dist.get_global_rank(self.process_group, 0)
        dist.reduce(lows, root, op=dist.ReduceOp.MIN, group=self.process_group)
        dist.reduce(highs, root, op=dist.ReduceOp.MAX, group=self.process_group)
        dist.all_reduce(squares, group=self.process_group)
        return lows, highs, squares.sqrt()


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    group = build_shard_groups(int(os.environ.get("SHARD", "2")))
    net = torch.nn.Linear(8, 8)
    tracker = OptimMetrics(group)
    for step in range(4):
        lows, highs, norms = tracker.collect(net.parameters())
        if dist.get_rank() == 0:
            print(step, lows.tolist(), highs.tolist(), norms.tolist())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
