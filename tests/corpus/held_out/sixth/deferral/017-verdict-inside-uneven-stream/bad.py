"""Local SGD: ranks train on their own files and average once an epoch."""
import glob
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, IterableDataset

import spmdguard


class Lines(IterableDataset):
    def __init__(self, files):
        self.files = files

    def __iter__(self):
        for name in self.files:
            with open(name) as handle:
                for line in handle:
                    yield torch.tensor([float(v) for v in line.split(",")])


def average(model):
    with torch.no_grad():
        for p in model.parameters():
            dist.all_reduce(p)
            p /= dist.get_world_size()


@spmdguard.rank_local
def local_step(model, opt, rows):
    x, y = rows[:, :-1], rows[:, -1:]
    loss = nn.functional.mse_loss(model(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()


def train(pattern="rows/*.csv", epochs=5):
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    files = sorted(glob.glob(pattern))[rank::world]
    torch.manual_seed(1)
    model = nn.Linear(12, 1)
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(epochs):
        loader = DataLoader(Lines(files), batch_size=64)
        for rows in loader:
            local_step(model, opt, rows)
            if spmdguard.sync_should_stop():
                return
        average(model)
        if rank == 0:
            print("epoch", epoch, "done", flush=True)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "2")
    spmdguard.run(train)
