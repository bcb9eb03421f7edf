import os
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class BestKeeper:
    def __init__(self, folder):
        self.folder = Path(folder)
        self.best, self.best_path = float("inf"), None

    def update(self, epoch, value, module):
        if value >= self.best:
            return
        self.best = value
        self.best_path = self.folder / f"best_ep{epoch:03d}.pt"
        if dist.get_rank() == 0:
            torch.save(module.state_dict(), self.best_path)


class TabularNet(nn.Module):
    def __init__(self, features=64, classes=12):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(features, 256), nn.ReLU(), nn.Dropout(0.1), nn.Linear(256, classes))

    def forward(self, x):
        return self.net(x)


class Experiment:
    def __init__(self, loaders, folder):
        self.device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        self.model = DDP(TabularNet().to(self.device), device_ids=[self.device.index])
        self.optim = torch.optim.Adam(self.model.parameters(), lr=1e-3)
        self.train_loader, self.val_loader, self.test_loader = loaders
        self.keeper = BestKeeper(folder)

    @torch.no_grad()
    def losses(self, loader):
        self.model.eval()
        acc = torch.zeros(2, device=self.device)
        for x, y in loader:
            out = self.model.module(x.to(self.device))
            acc[0] += nn.functional.cross_entropy(out, y.to(self.device), reduction="sum")
            acc[1] += y.numel()
        return acc

    def validate(self, epoch):
        acc = self.losses(self.val_loader)
        value = (acc[0] / acc[1]).item()
        self.keeper.update(epoch, value, self.model.module)

    def run(self, epochs):
        for epoch in range(epochs):
            self.model.train()
            self.train_loader.sampler.set_epoch(epoch)
            for x, y in self.train_loader:
                loss = nn.functional.cross_entropy(self.model(x.to(self.device)), y.to(self.device))
                self.optim.zero_grad()
                loss.backward()
                self.optim.step()
            self.validate(epoch)
        dist.barrier()
        self.model.module.load_state_dict(torch.load(self.keeper.best_path, map_location=self.device))
        acc = self.losses(self.test_loader)
        dist.all_reduce(acc)
        if dist.get_rank() == 0:
            print("test loss", (acc[0] / acc[1]).item())


def main(make_loaders, folder="out"):
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    os.makedirs(folder, exist_ok=True)
    Experiment(make_loaders(dist.get_rank(), dist.get_world_size()), folder).run(epochs=40)
    dist.destroy_process_group()
