import random
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Residual(nn.Module):
    def __init__(self, width, keep):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))
        self.keep = keep

    def forward(self, x):
        if not self.training:
            return x + self.body(x)
        gate = float(random.random() <= self.keep)
        return x + self.body(x) * (gate / self.keep)


class StochasticNet(nn.Module):
    def __init__(self, width=20, depth=6, last_keep=0.5):
        super().__init__()
        keeps = [1 - (1 - last_keep) * (i + 1) / depth for i in range(depth)]
        self.stem = nn.Linear(16, width)
        self.blocks = nn.ModuleList(Residual(width, k) for k in keeps)
        self.head = nn.Linear(width, 4)

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    net = DDP(StochasticNet())
    opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    for step in range(50):
        x, y = torch.randn(8, 16), torch.randint(0, 4, (8,))
        loss = nn.functional.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
