"""Learning-rate range test under DDP, then training with the rate it suggests."""
import copy
import math
import os
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def reduce_mean(value):
    out = value.detach().clone()
    dist.all_reduce(out)
    return out.item() / dist.get_world_size()


class LRFinder:
    def __init__(self, model, optimizer, criterion, device):
        self.model, self.optimizer, self.criterion, self.device = model, optimizer, criterion, device
        self.rates, self.losses = [], []
        self._weights = copy.deepcopy(model.module.state_dict())
        self._moments = copy.deepcopy(optimizer.state_dict())

    def range_test(self, loader, low=1e-6, high=1.0, steps=150, smooth=0.9, blow_up=4.0):
        factor = (high / low) ** (1 / max(1, steps - 1))
        rate, average, best = low, 0.0, math.inf
        stream = self._cycle(loader)
        self.model.train()
        for i in range(steps):
            for g in self.optimizer.param_groups:
                g["lr"] = rate
            x, y = next(stream)
            loss = self.criterion(self.model(x.to(self.device)), y.to(self.device))
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            average = smooth * average + (1 - smooth) * reduce_mean(loss)
            corrected = average / (1 - smooth ** (i + 1))
            self.rates.append(rate)
            self.losses.append(corrected)
            best = min(best, corrected)
            if not math.isfinite(corrected) or corrected > blow_up * best:
                break
            rate *= factor
        self.restore()

    @staticmethod
    def _cycle(loader):
        epoch = 0
        while True:
            loader.sampler.set_epoch(epoch)
            yield from loader
            epoch += 1

    def restore(self):
        self.model.module.load_state_dict(self._weights)
        self.optimizer.load_state_dict(self._moments)

    def suggestion(self, default):
        """Steepest descent on rank 0's curve, handed to every rank."""
        choice = torch.tensor([default], dtype=torch.float64, device=self.device)
        if dist.get_rank() == 0 and len(self.losses) > 12:
            skip = 5
            slopes = [(self.losses[i + 1] - self.losses[i - 1]) for i in range(skip, len(self.losses) - skip)]
            if slopes and min(slopes) < 0:
                choice[0] = self.rates[skip + slopes.index(min(slopes))]
        dist.broadcast(choice, src=0)
        return choice.item()

    def plot(self, path):
        import matplotlib
        matplotlib.use("Agg")
        import matplotlib.pyplot as plt
        fig, ax = plt.subplots()
        ax.plot(self.rates, self.losses)
        ax.set_xscale("log")
        fig.savefig(path)
        plt.close(fig)


def rings(n, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 2, generator=g) * 2
    return TensorDataset(x, (x.norm(dim=1) * 2).long().clamp(max=7))


def main():
    local = int(os.environ["LOCAL_RANK"])
    device = torch.device("cuda", local)
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", timeout=timedelta(minutes=10))
    rank = dist.get_rank()
    torch.manual_seed(4)

    data = rings(50_000, 0)
    sampler = DistributedSampler(data)
    loader = DataLoader(data, 128, sampler=sampler, drop_last=True)
    net = nn.Sequential(nn.Linear(2, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 8))
    model = DDP(net.to(device), device_ids=[local])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    criterion = nn.CrossEntropyLoss()

    finder = LRFinder(model, optimizer, criterion, device)
    finder.range_test(loader)
    lr = finder.suggestion(default=1e-3)
    if rank == 0:
        print(f"training with lr {lr:.2e}")
        try:
            finder.plot("lr.png")
        except ImportError:
            print("no matplotlib, no plot")

    for g in optimizer.param_groups:
        g["lr"] = lr
    for epoch in range(10):
        sampler.set_epoch(epoch)
        for x, y in loader:
            loss = criterion(model(x.to(device)), y.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        mean = reduce_mean(loss)
        if rank == 0:
            print(f"epoch {epoch}: {mean:.4f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
