import sys

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Bar:
    """Small stand-in for a progress bar: passes items through."""

    def __init__(self, items, label):
        self.items, self.label = items, label

    def __iter__(self):
        total = len(self.items)
        for done, item in enumerate(self.items, 1):
            yield item
            print(f"\r{self.label} {done}/{total}", end="", file=sys.stderr)


def epoch(loader, rank):
    seen = torch.zeros(1)
    if rank == 0:
        loader = Bar(loader, "train")
    for (x,) in loader:
        n = torch.tensor([float(len(x))])
        dist.all_reduce(n)
        seen += n
    return seen.item()


def main():
    dist.init_process_group("gloo")
    data = TensorDataset(torch.arange(24.0))
    loader = DataLoader(data, batch_size=4, sampler=DistributedSampler(data))
    assert epoch(loader, dist.get_rank()) >= 24
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
