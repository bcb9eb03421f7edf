from datetime import timedelta

import torch
import torch.distributed as dist


class TwoLevel:
    def __init__(self, per_node):
        self.node, _ = dist.new_subgroups(group_size=per_node)
        heads = list(range(0, dist.get_world_size(), per_node))
        self.heads = dist.new_group(heads)
        self.root = dist.get_global_rank(self.node, 0)
        self.leads = dist.get_rank() == self.root

    def sum(self, x):
        dist.reduce(x, dst=self.root, group=self.node)
        if self.leads:
            dist.all_reduce(x, group=self.heads)
        dist.broadcast(x, src=self.root, group=self.node)
        return x


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    two = TwoLevel(per_node=2)
    rank, world = dist.get_rank(), dist.get_world_size()
    got = two.sum(torch.tensor([float(rank + 1)]))
    assert got.item() == world * (world + 1) / 2
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
