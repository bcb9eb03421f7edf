from datetime import timedelta

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

BLOCK = 8


class DraftTrainer:
    def __init__(self):
        self.model = DDP(torch.nn.GRU(5, 5, batch_first=True))
        self.opt = torch.optim.Adam(self.model.parameters(), lr=1e-3)
        self.skipped = 0

    def loss(self, x, lengths):
        usable = lengths >= BLOCK
        out, _ = self.model(x[usable])
        return (out - x[usable]).pow(2).mean()

    def epoch(self, loader):
        for x, lengths in loader:
            usable = torch.tensor([int((lengths >= BLOCK).any())])
            dist.all_reduce(usable, op=dist.ReduceOp.MIN)
            if not usable.item():  # one rank has nothing: all skip together
                self.skipped += 1
                continue
            self.loss(x, lengths).backward()
            self.opt.step()
            self.opt.zero_grad()


def micro_batches(rank):
    gen = torch.Generator().manual_seed(rank)
    for _ in range(40):
        lengths = torch.randint(1, 2 * BLOCK, (3,), generator=gen)
        yield torch.randn(3, 2 * BLOCK, 5, generator=gen), lengths


if __name__ == "__main__":
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    trainer = DraftTrainer()
    trainer.epoch(micro_batches(dist.get_rank()))
    print(f"rank {dist.get_rank()} skipped {trainer.skipped}")
    dist.destroy_process_group()
