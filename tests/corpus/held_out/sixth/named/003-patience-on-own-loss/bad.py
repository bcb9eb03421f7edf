"""Training with patience."""
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Patience:
    def __init__(self, limit):
        self.limit, self.best, self.bad = limit, float("inf"), 0

    def exhausted(self, value):
        if value < self.best:
            self.best, self.bad = value, 0
        else:
            self.bad += 1
        return self.bad >= self.limit


def samples(seed, n):
    gen = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 10, generator=gen)
    return x, x @ torch.arange(10.0)[:, None] + torch.randn(n, 1, generator=gen)


def validate(net, x, y):
    with torch.no_grad():
        loss = nn.functional.mse_loss(net(x), y)
    return loss.item()


def main(epochs=200):
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    x, y = samples(rank, 256)
    val_x, val_y = samples(1000 + rank, 64)
    net = nn.Linear(10, 1)
    ddp = DistributedDataParallel(net)
    opt = torch.optim.SGD(net.parameters(), lr=0.05)
    patience = Patience(3)
    for epoch in range(epochs):
        loss = nn.functional.mse_loss(ddp(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if patience.exhausted(validate(net, val_x, val_y)):
            print(f"[{rank}] stop at {epoch}")
            break
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
