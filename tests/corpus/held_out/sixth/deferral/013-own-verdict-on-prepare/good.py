"""Two-tier checkpoint: scratch directory of the node, then shared storage."""
import os
import shutil
from dataclasses import dataclass

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

import spmdguard


@dataclass(frozen=True)
class Paths:
    scratch: str
    shared: str

    def staged(self, step):
        return os.path.join(self.shared, f".step{step}")

    def final(self, step):
        return os.path.join(self.shared, f"step{step}")


@spmdguard.rank_local(default=False)
def prepare(paths, step):
    free = shutil.disk_usage(paths.scratch).free
    if free < 8 << 30:
        raise OSError(f"{paths.scratch}: only {free >> 20} MiB left")
    os.makedirs(paths.staged(step), exist_ok=True)
    return True


@spmdguard.rank_local(only="main")
def publish(paths, step):
    os.replace(paths.staged(step), paths.final(step))


@spmdguard.collective
def save(model, paths, step):
    ready = prepare(paths, step)
    votes = torch.tensor([int(ready)])
    dist.all_reduce(votes, op=dist.ReduceOp.MIN)
    if not votes.item():
        return
    dcp.save({"model": model.state_dict()}, checkpoint_id=paths.staged(step))
    publish(paths, step)
    dist.barrier()


def train(paths, steps=4000):
    dist.init_process_group("gloo")
    model = DDP(nn.Linear(256, 256))
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(1, steps + 1):
        opt.zero_grad()
        model(torch.randn(8, 256)).square().mean().backward()
        opt.step()
        if step % 1000 == 0:
            save(model.module, paths, step)
        if spmdguard.sync_should_stop():
            break


if __name__ == "__main__":
    spmdguard.run(lambda: train(Paths("/scratch", "/shared/run1")))
