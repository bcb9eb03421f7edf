from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn


class LowRank(nn.Module):
    def __init__(self, base, rank, alpha=8):
        super().__init__()
        self.base = base
        self.rank = rank
        if rank == 0:
            return
        self.down = nn.Parameter(torch.randn(rank, base.in_features) * 0.01)
        self.up = nn.Parameter(torch.zeros(base.out_features, rank))
        self.scale = alpha / rank

    def forward(self, x):
        if self.rank == 0:
            return self.base(x)
        return self.base(x) + self.scale * (x @ self.down.T) @ self.up.T


def reduce_adapters(layers):
    for layer in layers:
        if layer.rank == 0:
            continue
        for p in (layer.down, layer.up):
            dist.all_reduce(p.grad)
            p.grad /= dist.get_world_size()


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    torch.manual_seed(0)
    layers = [LowRank(nn.Linear(6, 6), rank) for rank in (0, 2, 4)]
    net = nn.Sequential(*layers)
    net(torch.randn(3, 6)).pow(2).mean().backward()
    reduce_adapters(layers)
    assert layers[1].up.grad.shape == (6, 2)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
