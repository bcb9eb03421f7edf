import random
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn


class Stack(nn.Module):
    def __init__(self, depth=6, width=16, drop=0.2):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.head = nn.Linear(width, 2)
        self.drop = drop

    def forward(self, x):
        for layer in self.layers:
            if self.training and random.random() < self.drop:
                continue
            x = x + layer(x).relu()
        return self.head(x)


def average_gradients(module):
    world = dist.get_world_size()
    for param in module.parameters():
        if param.grad is None:
            continue
        dist.all_reduce(param.grad)
        param.grad /= world


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    torch.manual_seed(0)
    model = Stack()
    opt = torch.optim.SGD(model.parameters(), lr=0.05)
    torch.manual_seed(100 + dist.get_rank())
    for _ in range(25):
        opt.zero_grad(set_to_none=True)
        loss = nn.functional.cross_entropy(model(torch.randn(8, 16)), torch.randint(0, 2, (8,)))
        loss.backward()
        average_gradients(model)
        opt.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
