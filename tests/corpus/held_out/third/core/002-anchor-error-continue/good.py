import logging
import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

log = logging.getLogger("draft")


class NoAnchorError(ValueError):
    pass


class DraftHead(torch.nn.Module):
    def __init__(self, width, block):
        super().__init__()
        self.proj = torch.nn.Linear(width, width)
        self.block = block

    def forward(self, hidden, lengths):
        usable = [h[: n - n % self.block] for h, n in zip(hidden, lengths) if n >= self.block]
        if not usable:
            raise NoAnchorError(f"no sample reaches {self.block} positions")
        return torch.cat([self.proj(u) for u in usable]).pow(2).mean()


class DraftTrainer:
    def __init__(self, width=16, block=4, accumulate=1):
        self.model = DDP(DraftHead(width, block))
        self.opt = torch.optim.SGD(self.model.parameters(), lr=0.05)
        self.accumulate = accumulate
        self.skipped = 0

    def everybody_has_one(self, lengths):
        flag = torch.tensor([float(max(lengths) >= self.model.module.block)])
        dist.all_reduce(flag, op=dist.ReduceOp.MIN)
        return flag.item() > 0

    def run(self, stream):
        for hidden, lengths in stream:
            self.opt.zero_grad()
            if not self.everybody_has_one(lengths):
                self.skipped += 1
                log.warning("skip: a rank has no sample of full length")
                continue
            loss = self.model(hidden, lengths)
            loss.backward()
            self.opt.step()


def synthetic(rank, steps):
    gen = torch.Generator().manual_seed(17 + rank)
    for _ in range(steps):
        lengths = torch.randint(1, 9, (3,), generator=gen).tolist()
        yield torch.randn(3, 8, 16, generator=gen), lengths


if __name__ == "__main__":
    dist.init_process_group("gloo", timeout=timedelta(seconds=20))
    trainer = DraftTrainer()
    trainer.run(synthetic(int(os.environ["RANK"]), 40))
    dist.destroy_process_group()
