"""Experiment tracking that may fail without harm to the run."""
import functools
import os
import random
import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


def rank_zero(fn):
    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        if dist.is_initialized() and dist.get_rank() != 0:
            return None
        return fn(*args, **kwargs)
    return wrapper


class Tracker:
    def __init__(self, project, config):
        self.run, self.failures = None, 0
        self._open(project, config)

    @rank_zero
    def _open(self, project, config):
        try:
            import wandb
            self.run = wandb.init(project=project, config=config, mode=os.environ.get("WANDB_MODE", "online"))
        except Exception as err:  # a tracker is never worth a run
            print(f"tracking is off: {err}")
            self.run = None

    @rank_zero
    def log(self, values, step):
        line = " ".join(f"{k}={v:.4g}" for k, v in values.items())
        print(f"[{step}] {line}")
        if self.run is None:
            return
        try:
            self.run.log(values, step=step)
            self.failures = 0
        except Exception as err:
            self.failures += 1
            print(f"tracker failed ({self.failures}): {err}")
            if self.failures >= 5:
                self.run = None

    @rank_zero
    def artifact(self, path):
        for attempt in range(3):
            if self.run is None:
                return
            try:
                self.run.save(path)
                return
            except OSError as err:
                print(f"upload, try {attempt + 1}: {err}")
                time.sleep(2 ** attempt + random.random())

    @rank_zero
    def close(self):
        if self.run is not None:
            try:
                self.run.finish(quiet=True)
            except Exception as err:
                print(f"tracker not closed: {err}")


class Averages:
    """Named running means, packed into one reduction when they are read."""

    def __init__(self, device):
        self.device, self.sums, self.n = device, {}, 0

    def add(self, **values):
        for k, v in values.items():
            self.sums[k] = self.sums.get(k, torch.zeros((), device=self.device)) + v.detach()
        self.n += 1

    def read(self):
        keys = sorted(self.sums)
        packed = torch.stack([self.sums[k] for k in keys]) / max(self.n, 1)
        dist.all_reduce(packed)
        packed /= dist.get_world_size()
        self.sums, self.n = {}, 0
        return dict(zip(keys, packed.tolist()))


class Vae(nn.Module):
    def __init__(self, d=784, z=32):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(d, 400), nn.ReLU(), nn.Linear(400, 2 * z))
        self.dec = nn.Sequential(nn.Linear(z, 400), nn.ReLU(), nn.Linear(400, d))

    def forward(self, x):
        mu, logvar = self.enc(x).chunk(2, -1)
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp()
        rec = nn.functional.mse_loss(self.dec(z), x, reduction="none").sum(-1).mean()
        kl = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum(-1).mean()
        return rec, kl


def main():
    local = int(os.environ["LOCAL_RANK"])
    device = torch.device("cuda", local)
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", timeout=timedelta(minutes=15))
    rank = dist.get_rank()
    torch.manual_seed(rank)
    config = {"lr": 1e-3, "batch": 256, "steps": 10_000, "log_every": 50, "beta": 0.5}
    tracker = Tracker("vae", config)
    model = DDP(Vae().to(device), device_ids=[local])
    optimizer = torch.optim.Adam(model.parameters(), lr=config["lr"])
    means = Averages(device)
    for step in range(1, config["steps"] + 1):
        x = torch.rand(config["batch"], 784, device=device).pow(3)
        rec, kl = model(x)
        optimizer.zero_grad(set_to_none=True)
        (rec + config["beta"] * kl).backward()
        optimizer.step()
        means.add(rec=rec, kl=kl)
        if step % config["log_every"] == 0:
            tracker.log(means.read(), step)
        if step % 2000 == 0 and rank == 0:
            torch.save(model.module.state_dict(), "vae.pt")
            tracker.artifact("vae.pt")
    tracker.close()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
