"""Stops when the loss has not improved for a while."""
from dataclasses import dataclass
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


@dataclass
class Patience:
    limit: int
    best: float = float("inf")
    bad: int = 0

    def __call__(self, loss: float) -> bool:
        self.bad = 0 if loss < self.best else self.bad + 1
        self.best = min(self.best, loss)
        return self.bad < self.limit


def fit(net, batches):
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    patience, value = Patience(limit=3), float("inf")
    while patience(value):
        rows = next(batches)
        loss = (net(rows) - rows.sum(dim=1, keepdim=True)).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        value = mean.item()


def batches(seed):
    gen = torch.Generator().manual_seed(seed)
    while True:
        yield torch.randn(8, 4, generator=gen)


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    net = DistributedDataParallel(torch.nn.Linear(4, 1))
    fit(net, batches(dist.get_rank()))
    dist.destroy_process_group()
    print(net.module.weight.tolist())


if __name__ == "__main__":
    main()
