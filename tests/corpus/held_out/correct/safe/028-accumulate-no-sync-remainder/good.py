"""Gradient accumulation that treats the last, shorter window rightly."""
import contextlib
import os
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler


class Windows(Dataset):
    """Overlapping windows of a random walk; the target is the next value."""

    def __init__(self, n=10_007, length=32, seed=0):
        g = torch.Generator().manual_seed(seed)
        self.walk = torch.randn(n + length, generator=g).cumsum(0) / 10
        self.n, self.length = n, length

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        piece = self.walk[i:i + self.length + 1]
        return piece[:-1].unsqueeze(-1), piece[-1:]


class Forecaster(nn.Module):
    def __init__(self, hidden=64):
        super().__init__()
        self.rnn = nn.GRU(1, hidden, num_layers=2, batch_first=True)
        self.out = nn.Linear(hidden, 1)

    def forward(self, x):
        h, _ = self.rnn(x)
        return self.out(h[:, -1])


class Accumulator:
    """Says for each micro-batch how long its window is and whether it closes it."""

    def __init__(self, total, window):
        self.total, self.window = total, window
        self.full = (total // window) * window

    def window_of(self, i):
        return self.window if i < self.full else self.total - self.full

    def closes(self, i):
        return (i + 1) % self.window == 0 or i + 1 == self.total


def train_epoch(model, loader, optimizer, acc, device):
    model.train()
    seen = torch.zeros(2, device=device)
    for i, (x, y) in enumerate(loader):
        x, y = x.to(device), y.to(device)
        closing = acc.closes(i)
        guard = contextlib.nullcontext() if closing else model.no_sync()
        with guard:
            loss = F.smooth_l1_loss(model(x), y)
            (loss / acc.window_of(i)).backward()
        seen += torch.stack([loss.detach() * len(y), torch.tensor(float(len(y)), device=device)])
        if closing:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
    dist.all_reduce(seen)
    return (seen[0] / seen[1]).item()


@torch.no_grad()
def evaluate(model, loader, device):
    model.eval()
    seen = torch.zeros(2, device=device)
    for x, y in loader:
        err = (model.module(x.to(device)) - y.to(device)).abs().sum()
        seen += torch.stack([err, torch.tensor(float(len(y)), device=device)])
    dist.all_reduce(seen)
    return (seen[0] / seen[1]).item()


def build_loader(data, batch, shuffle):
    sampler = DistributedSampler(data, shuffle=shuffle)
    return DataLoader(data, batch_size=batch, sampler=sampler, num_workers=2), sampler


def main():
    backend = "nccl" if torch.cuda.is_available() else "gloo"
    dist.init_process_group(backend, timeout=timedelta(minutes=10))
    rank = dist.get_rank()
    if backend == "nccl":
        local = int(os.environ["LOCAL_RANK"])
        torch.cuda.set_device(local)
        device, ids = torch.device("cuda", local), [local]
    else:
        device, ids = torch.device("cpu"), None
    torch.manual_seed(8)

    train_loader, sampler = build_loader(Windows(), 64, True)
    valid_loader, _ = build_loader(Windows(999, seed=1), 128, False)
    model = DistributedDataParallel(Forecaster().to(device), device_ids=ids)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    acc = Accumulator(len(train_loader), window=6)
    best = float("inf")
    for epoch in range(15):
        sampler.set_epoch(epoch)
        train = train_epoch(model, train_loader, optimizer, acc, device)
        valid = evaluate(model, valid_loader, device)
        if rank == 0:
            print(f"epoch {epoch}: train {train:.4f} valid {valid:.4f}")
            if valid < best:
                torch.save(model.module.state_dict(), "forecaster.pt")
        best = min(best, valid)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
