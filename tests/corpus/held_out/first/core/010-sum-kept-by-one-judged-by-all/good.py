import math
import os
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


@dataclass
class TrainConfig:
    epochs: int = 8
    lr: float = 0.02
    folder: str = "best"


class Trainer:
    def __init__(self, cfg: TrainConfig):
        self.cfg = cfg
        self.rank = dist.get_rank()
        self.world = dist.get_world_size()
        self.model = DDP(torch.nn.Linear(10, 1))
        self.opt = torch.optim.SGD(self.model.parameters(), lr=cfg.lr)
        self.best = math.inf
        self.gen = torch.Generator().manual_seed(self.rank)

    def batch(self):
        x = torch.randn(16, 10, generator=self.gen)
        return x, x.sum(1, keepdim=True) + 0.3 * torch.randn(16, 1, generator=self.gen)

    def train_epoch(self):
        for _ in range(10):
            x, y = self.batch()
            self.opt.zero_grad()
            torch.nn.functional.mse_loss(self.model(x), y).backward()
            self.opt.step()

    @torch.no_grad()
    def val_epoch(self):
        total = torch.zeros(())
        for _ in range(4):
            x, y = self.batch()
            total += torch.nn.functional.mse_loss(self.model.module(x), y)
        total /= 4 * self.world
        dist.all_reduce(total, op=dist.ReduceOp.SUM)
        return total.item()

    def save(self, epoch):
        if self.rank == 0:
            os.makedirs(self.cfg.folder, exist_ok=True)
            torch.save(self.model.module.state_dict(), f"{self.cfg.folder}/{epoch}.pt")
        dist.barrier()

    def run(self):
        for epoch in range(self.cfg.epochs):
            self.train_epoch()
            value = self.val_epoch()
            if value < self.best:
                self.best = value
                self.save(epoch)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    Trainer(TrainConfig()).run()
    dist.destroy_process_group()
