from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import nn


@dataclass(frozen=True)
class AdapterConfig:
    rank: int = 4
    alpha: float = 8.0


class Adapted(nn.Module):
    def __init__(self, width, cfg):
        super().__init__()
        self.base = nn.Linear(width, width, bias=False)
        self.rank = cfg.rank
        if self.rank > 0:
            self.down = nn.Linear(width, self.rank, bias=False)
            self.up = nn.Linear(self.rank, width, bias=False)
            self.scale = cfg.alpha / self.rank

    def forward(self, x):
        y = self.base(x)
        if self.rank == 0:
            return y
        return y + self.scale * self.up(self.down(x))

    def sync_adapter_grads(self):
        if self.rank == 0:
            return
        for p in (self.down.weight, self.up.weight):
            dist.all_reduce(p.grad, op=dist.ReduceOp.SUM)


def main():
    dist.init_process_group("gloo")
    model = Adapted(8, AdapterConfig())
    model(torch.randn(2, 8)).sum().backward()
    model.sync_adapter_grads()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
