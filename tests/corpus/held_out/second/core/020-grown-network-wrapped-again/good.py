from collections import deque
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Plateau:
    def __init__(self, window=5, gain=0.01):
        self.window, self.gain, self.losses = window, gain, deque(maxlen=2 * window)

    def reached(self, loss: float) -> bool:
        self.losses.append(loss)
        if len(self.losses) < 2 * self.window:
            return False
        values = list(self.losses)
        old, new = sum(values[: self.window]), sum(values[self.window :])
        return old - new < self.gain * old

    def reset(self):
        self.losses.clear()


def widened(net: nn.Sequential) -> nn.Sequential:
    return nn.Sequential(*net[:-1], nn.Linear(16, 16), nn.Tanh(), net[-1])


def train(steps, x, y):
    model = DistributedDataParallel(nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1)))
    plateau = Plateau()
    for _ in range(steps):
        loss = nn.functional.mse_loss(model(x), y)
        model.zero_grad()
        loss.backward()
        with torch.no_grad():
            for p in model.parameters():
                p -= 0.05 * p.grad
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        if plateau.reached(mean.item() / dist.get_world_size()):
            model = DistributedDataParallel(widened(model.module))
            plateau.reset()
    return len(model.module)


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    torch.manual_seed(dist.get_rank())
    x = torch.randn(64, 4)
    print(train(200, x, x.prod(1, keepdim=True)))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
