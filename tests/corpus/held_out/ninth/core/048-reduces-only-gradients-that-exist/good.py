from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn


class TwoAdapters(nn.Module):
    def __init__(self):
        super().__init__()
        self.base = nn.Linear(24, 24)
        self.adapters = nn.ModuleDict({"text": nn.Linear(24, 1), "series": nn.Linear(24, 1)})

    def loss(self, batch):
        total = 0.0
        for task, x in batch.items():
            total = total + self.adapters[task](self.base(x).tanh()).pow(2).mean()
        return total


def average_gradients(model):
    world = dist.get_world_size()
    for param in model.parameters():
        if param.grad is None:
            param.grad = torch.zeros_like(param)
        dist.all_reduce(param.grad)
        param.grad /= world


def draw(rank, step):
    batch = {"text": torch.randn(4, 24)}
    if (rank + step) % 3:
        batch["series"] = torch.randn(4, 24)
    return batch


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    torch.manual_seed(0)
    model = TwoAdapters()
    opt = torch.optim.SGD(model.parameters(), lr=0.05)
    for step in range(12):
        opt.zero_grad()
        model.loss(draw(dist.get_rank(), step)).backward()
        average_gradients(model)
        opt.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
