import os
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.nn.parallel import DistributedDataParallel as DDP


def validation_loss(net, loader):
    net.eval()
    total, seen = 0.0, 0
    with torch.no_grad():
        for x, y in loader:
            total += torch.nn.functional.mse_loss(net.module(x), y, reduction="sum").item()
            seen += y.numel()
    net.train()
    return total / max(seen, 1)


class CheckpointNamer:
    pattern = "epoch={epoch}-val_loss={val_loss:.2f}-step={step}"

    def __init__(self, root):
        self.root = root

    def path(self, **values):
        return os.path.join(self.root, self.pattern.format(**values))


def shards(rank, n):
    gen = torch.Generator().manual_seed(rank)
    return [(torch.randn(4, 6, generator=gen), torch.randn(4, 1, generator=gen)) for _ in range(n)]


def main():
    dist.init_process_group("gloo", timeout=timedelta(minutes=2))
    rank = dist.get_rank()
    net = DDP(torch.nn.Linear(6, 1))
    opt = torch.optim.SGD(net.parameters(), lr=0.05)
    names = CheckpointNamer("/tmp/bio_run")
    step = 0
    for epoch in range(3):
        for x, y in shards(rank, 10):
            opt.zero_grad()
            torch.nn.functional.mse_loss(net(x), y).backward()
            opt.step()
            step += 1
        loss = validation_loss(net, shards(rank + 100, 4))
        dcp.save({"net": net.module.state_dict()}, checkpoint_id=names.path(epoch=epoch, val_loss=loss, step=step))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
