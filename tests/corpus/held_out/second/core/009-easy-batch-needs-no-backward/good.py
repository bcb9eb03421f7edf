"""Curriculum: spend no backward pass on batches that are learnt already."""
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Curriculum:
    def __init__(self, model, floor):
        self.model, self.floor, self.skipped = model, floor, 0
        self.opt = torch.optim.SGD(model.parameters(), lr=0.2)

    def learnt(self, loss) -> bool:
        hardest = loss.detach().clone()
        dist.all_reduce(hardest, op=dist.ReduceOp.MAX)
        return hardest.item() < self.floor

    def step(self, x, y):
        loss = nn.functional.mse_loss(self.model(x), y)
        if self.learnt(loss):
            self.skipped += 1
            return
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    gen = torch.Generator().manual_seed(dist.get_rank())
    truth = torch.arange(6.0).unsqueeze(1)
    job = Curriculum(DistributedDataParallel(nn.Linear(6, 1)), floor=0.5)
    for _ in range(80):
        x = torch.randn(16, 6, generator=gen)
        job.step(x, x @ truth)
    print(dist.get_rank(), "skipped", job.skipped)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
