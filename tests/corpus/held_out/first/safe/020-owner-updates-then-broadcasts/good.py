import torch
import torch.distributed as dist
from torch import nn


class ShardedSGD:
    def __init__(self, params, lr):
        self.params, self.lr = list(params), lr
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.momentum = {}

    def owner(self, i):
        return i % self.world

    def step(self):
        for i, p in enumerate(self.params):
            dist.reduce(p.grad, dst=self.owner(i))
            if self.owner(i) != self.rank:
                continue
            buf = self.momentum.setdefault(i, torch.zeros_like(p))
            buf.mul_(0.9).add_(p.grad / self.world)
            p.data.sub_(self.lr * buf)
        for i, p in enumerate(self.params):
            dist.broadcast(p.data, src=self.owner(i))


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1))
    opt = ShardedSGD(model.parameters(), lr=0.1)
    for _ in range(2):
        model.zero_grad()
        model(torch.randn(3, 4) + opt.rank).sum().backward()
        opt.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
