import json
import math
import os
from collections import deque

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


class SpikeGuard:
    """Skip a batch whose loss is far above the recent median."""

    def __init__(self, run_dir, factor=5.0, window=200, warmup=50):
        self.factor, self.warmup = factor, warmup
        self.history = deque(maxlen=window)
        self.path = os.path.join(run_dir, "loss_spikes.jsonl")

    def is_spike(self, value):
        if not math.isfinite(value):
            return True
        if len(self.history) >= self.warmup:
            median = sorted(self.history)[len(self.history) // 2]
            if value > self.factor * median:
                return True
        self.history.append(value)
        return False

    def _sync_skip(self, skip, device):
        flag = torch.tensor(int(skip), device=device)
        dist.all_reduce(flag, op=dist.ReduceOp.MAX)
        return bool(flag.item())

    def should_skip(self, step, loss):
        value = loss.item()
        skip = self._sync_skip(self.is_spike(value), loss.device)
        if skip and dist.get_rank() == 0:
            with open(self.path, "a") as f:
                f.write(json.dumps({"step": step, "loss": value}) + "\n")
        return skip


class GridForecaster(torch.nn.Module):
    def __init__(self, channels=78, width=192):
        super().__init__()
        self.enc = torch.nn.Conv2d(channels, width, 4, 4)
        self.mid = torch.nn.Sequential(*[torch.nn.Conv2d(width, width, 3, padding=1) for _ in range(4)])
        self.dec = torch.nn.ConvTranspose2d(width, channels, 4, 4)

    def forward(self, x):
        return x + self.dec(self.mid(torch.nn.functional.gelu(self.enc(x))))


def train(make_loader, run_dir, mini_epochs=64):
    dist.init_process_group("nccl")
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    os.makedirs(run_dir, exist_ok=True)
    model = DDP(GridForecaster().to(device), device_ids=[device.index])
    optim = torch.optim.AdamW(model.parameters(), lr=1e-4)
    guard = SpikeGuard(run_dir)
    loader, step = make_loader(dist.get_rank(), dist.get_world_size()), 0
    for epoch in range(mini_epochs):
        loader.sampler.set_epoch(epoch)
        for source, target in loader:
            step += 1
            loss = (model(source.to(device)) - target.to(device)).pow(2).mean()
            if guard.should_skip(step, loss):
                optim.zero_grad()
                continue
            optim.zero_grad()
            loss.backward()
            optim.step()
    dist.destroy_process_group()
