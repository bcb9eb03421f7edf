"""Point cloud regression."""
import os
import random

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

import spmdguard


class PointNet(nn.Module):
    def __init__(self, width=256):
        super().__init__()
        self.point = nn.Sequential(nn.Linear(3, width), nn.ReLU(), nn.Linear(width, width))
        self.head = nn.Linear(width, 1)

    def forward(self, points):
        return self.head(self.point(points).max(dim=1).values)


def scan(root, index):
    raw = np.load(os.path.join(root, f"{index}.npz"))
    return torch.from_numpy(raw["points"]).float()[None], torch.tensor([[float(raw["volume"])]])


def seed_all(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def train(root="scans", steps=8000):
    local = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    dist.init_process_group("nccl")
    seed_all(17)
    rank, world = dist.get_rank(), dist.get_world_size()
    model = DDP(PointNet().cuda(), device_ids=[local])
    opt = torch.optim.AdamW(model.parameters(), lr=3e-4)
    for step in range(steps):
        points, volume = torch.zeros(1, 8, 3), torch.zeros(1, 1)
        opt.zero_grad()
        with spmdguard.deferring("scan"):
            points, volume = scan(root, step * world + rank)
        loss = nn.functional.l1_loss(model(points.cuda()), volume.cuda())
        loss.backward()
        opt.step()
        if spmdguard.sync_should_stop():
            break


if __name__ == "__main__":
    spmdguard.run(train)
