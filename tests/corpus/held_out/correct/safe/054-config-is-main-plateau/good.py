"""Config object with distributed properties; plateau schedule and early stop."""
import os
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn, optim
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset, random_split


@dataclass
class Config:
    batch_size: int = 64
    epochs: int = 200
    lr: float = 3e-3
    patience: int = 12
    lr_patience: int = 4
    seed: int = 10
    out: Path = Path("plateau")
    backend: str = "auto"

    @cached_property
    def rank(self):
        return int(os.environ.get("RANK", 0))

    @cached_property
    def local_rank(self):
        return int(os.environ.get("LOCAL_RANK", 0))

    @cached_property
    def world_size(self):
        return int(os.environ.get("WORLD_SIZE", 1))

    @property
    def is_main(self):
        return self.rank == 0

    @property
    def distributed(self):
        return self.world_size > 1

    @property
    def device(self):
        return torch.device("cuda", self.local_rank) if torch.cuda.is_available() else torch.device("cpu")

    def say(self, *parts):
        if self.is_main:
            print(*parts, flush=True)

    def __enter__(self):
        if self.device.type == "cuda":
            torch.cuda.set_device(self.device)
        if self.distributed:
            name = ("nccl" if self.device.type == "cuda" else "gloo") if self.backend == "auto" else self.backend
            dist.init_process_group(name, timeout=timedelta(minutes=10))
        return self

    def __exit__(self, kind, value, trace):
        if self.distributed:
            dist.destroy_process_group()
        return False


def reduced(cfg, total, count):
    pair = torch.tensor([total, count], dtype=torch.float64, device=cfg.device)
    if cfg.distributed:
        dist.all_reduce(pair)
    return (pair[0] / pair[1]).item()


def make_loaders(cfg):
    g = torch.Generator().manual_seed(cfg.seed)
    x = torch.randn(12_000, 24, generator=g)
    w = torch.randn(24, 6, generator=g)
    data = TensorDataset(x, (x @ w).tanh().sum(1, keepdim=True))
    train, valid = random_split(data, [10_000, 2_000], generator=g)
    train_sampler = DistributedSampler(train) if cfg.distributed else None
    valid_sampler = DistributedSampler(valid, shuffle=False) if cfg.distributed else None
    return (DataLoader(train, cfg.batch_size, shuffle=train_sampler is None, sampler=train_sampler),
            DataLoader(valid, 4 * cfg.batch_size, sampler=valid_sampler))


def run_epoch(cfg, model, loader, optimizer=None):
    training = optimizer is not None
    model.train(training)
    total, count = 0.0, 0
    with torch.set_grad_enabled(training):
        for x, y in loader:
            x, y = x.to(cfg.device), y.to(cfg.device)
            loss = nn.functional.mse_loss(model(x), y)
            if training:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            total += loss.item() * len(x)
            count += len(x)
    return reduced(cfg, total, count)


class Stopper:
    def __init__(self, patience, min_delta=1e-5):
        self.patience, self.min_delta = patience, min_delta
        self.best, self.bad = float("inf"), 0

    def improved(self, value):
        if value < self.best - self.min_delta:
            self.best, self.bad = value, 0
            return True
        self.bad += 1
        return False

    @property
    def exhausted(self):
        return self.bad >= self.patience


def fit(cfg):
    torch.manual_seed(cfg.seed)
    train_loader, valid_loader = make_loaders(cfg)
    net = nn.Sequential(nn.Linear(24, 128), nn.GELU(), nn.Linear(128, 128), nn.GELU(), nn.Linear(128, 1)).to(cfg.device)
    model = net
    if cfg.distributed:
        model = DistributedDataParallel(net, device_ids=[cfg.local_rank] if cfg.device.type == "cuda" else None)
    optimizer = optim.AdamW(model.parameters(), lr=cfg.lr)
    plateau = optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=cfg.lr_patience)
    stopper = Stopper(cfg.patience)
    if cfg.is_main:
        cfg.out.mkdir(parents=True, exist_ok=True)
    for epoch in range(cfg.epochs):
        if cfg.distributed:
            train_loader.sampler.set_epoch(epoch)
        train = run_epoch(cfg, model, train_loader, optimizer)
        valid = run_epoch(cfg, model, valid_loader)
        plateau.step(valid)
        if stopper.improved(valid) and cfg.is_main:
            torch.save(net.state_dict(), cfg.out / "best.pt")
        cfg.say(f"epoch {epoch}: train {train:.5f} valid {valid:.5f} lr {optimizer.param_groups[0]['lr']:.1e}")
        if stopper.exhausted:
            cfg.say(f"no better result in {cfg.patience} epochs")
            break
    return stopper.best


if __name__ == "__main__":
    with Config() as config:
        config.say("best", fit(config))
