import functools
import os
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def main_process_only(function):
    @functools.wraps(function)
    def wrapped(*args, **kwargs):
        if dist.get_rank() == 0:
            return function(*args, **kwargs)
        return None

    return wrapped


class Checkpointer:
    """Writes one folder per checkpoint; all processes put their own part in it."""

    def __init__(self, root):
        self.root = Path(root)

    def save(self, recoverables, meta):
        box = [None]
        if dist.get_rank() == 0:
            box[0] = self.root / time.strftime("CKPT+%Y-%m-%d+%H-%M-%S")
            box[0].mkdir(parents=True)
            torch.save(meta, box[0] / "meta.pt")
        dist.broadcast_object_list(box, src=0)
        rank = dist.get_rank()
        for name, obj in recoverables.items():
            torch.save(obj.state_dict(), box[0] / f"{name}.{rank}.pt")
        return box[0]


class Brain:
    def __init__(self, module, folder):
        self.device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        self.module = DistributedDataParallel(module.to(self.device), device_ids=[self.device.index])
        self.optimizer = torch.optim.AdamW(self.module.parameters(), lr=1e-3)
        self.checkpointer = Checkpointer(folder)

    @main_process_only
    def write_stats(self, epoch, loss):
        print(f"epoch {epoch} loss {loss:.4f}", flush=True)

    @main_process_only
    def on_stage_end(self, epoch, loss):
        self.write_stats(epoch, loss)
        self.checkpointer.save({"model": self.module, "optim": self.optimizer}, {"epoch": epoch})

    def fit(self, epochs, batches):
        for epoch in range(epochs):
            running = torch.zeros((), device=self.device)
            for _ in range(batches):
                x = torch.randn(8, 40, device=self.device)
                loss = self.module(x).pow(2).mean()
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                running += loss.detach()
            dist.all_reduce(running, op=dist.ReduceOp.AVG)
            self.on_stage_end(epoch, running.item() / batches)


def main():
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    brain = Brain(nn.Sequential(nn.Linear(40, 80), nn.ReLU(), nn.Linear(80, 10)), "results/save")
    brain.fit(epochs=10, batches=100)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
