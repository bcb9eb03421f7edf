"""Checkpoint manager: atomic writes, rotation, best copy, and errors told to all ranks."""
import json
import os
import shutil
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


class CheckpointManager:
    INDEX = "index.json"

    def __init__(self, folder, keep_last=3, keep_every=None, metric_mode="min"):
        self.folder, self.keep_last, self.keep_every = Path(folder), keep_last, keep_every
        self.sign = 1 if metric_mode == "min" else -1
        self.owner = dist.get_rank() == 0
        self.entries = []
        if self.owner:
            self.folder.mkdir(parents=True, exist_ok=True)
            self.entries = self._read_index()
        dist.barrier()

    def _read_index(self):
        index = self.folder / self.INDEX
        if not index.exists():
            return []
        return [e for e in json.loads(index.read_text()) if (self.folder / e["file"]).exists()]

    def _write_index(self):
        partial = self.folder / (self.INDEX + ".part")
        partial.write_text(json.dumps(self.entries, indent=1))
        partial.replace(self.folder / self.INDEX)

    def _write(self, state, step, metric):
        name = f"step-{step:08d}.pt"
        partial = self.folder / (name + ".part")
        torch.save(state, partial)
        partial.replace(self.folder / name)
        self.entries.append({"step": step, "file": name, "metric": metric})
        best = min(self.entries, key=lambda e: self.sign * e["metric"])
        if best["step"] == step:
            shutil.copy2(self.folder / name, self.folder / "best.pt")
        self._rotate(best)
        self._write_index()

    def _rotate(self, best):
        recent = {e["file"] for e in self.entries[-self.keep_last:]} | {best["file"]}
        kept = []
        for e in self.entries:
            pinned = self.keep_every and e["step"] % self.keep_every == 0
            if e["file"] in recent or pinned:
                kept.append(e)
            else:
                (self.folder / e["file"]).unlink(missing_ok=True)
        self.entries = kept

    def save(self, state, step, metric):
        """Called on every rank; True on every rank if rank 0 could write."""
        fine = torch.ones(1)
        if self.owner:
            try:
                self._write(state, step, metric)
            except (OSError, RuntimeError) as err:
                print(f"checkpoint at step {step} failed: {err}")
                fine.zero_()
        dist.broadcast(fine, src=0)
        return bool(fine.item())

    def latest(self):
        box = [str(self.folder / self.entries[-1]["file"]) if self.owner and self.entries else None]
        dist.broadcast_object_list(box, src=0)
        return box[0]


class Autoencoder(nn.Module):
    def __init__(self, d=64, z=8):
        super().__init__()
        self.enc, self.dec = nn.Sequential(nn.Linear(d, 32), nn.ReLU(), nn.Linear(32, z)), nn.Linear(z, d)

    def forward(self, x):
        return self.dec(self.enc(x))


def mean(value):
    t = torch.tensor([value])
    dist.all_reduce(t)
    return t.item() / dist.get_world_size()


def main():
    dist.init_process_group("gloo", timeout=timedelta(minutes=10))
    rank = dist.get_rank()
    torch.manual_seed(0)
    manager = CheckpointManager(os.environ.get("CKPT", "ckpts"), keep_last=2, keep_every=1000)
    net = Autoencoder()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    first = 0
    path = manager.latest()
    if path is not None:
        blob = torch.load(path)
        net.load_state_dict(blob["net"])
        optimizer.load_state_dict(blob["optimizer"])
        first = blob["step"]
    dist.barrier()
    model = DDP(net)
    basis = torch.randn(8, 64, generator=torch.Generator().manual_seed(5))
    gen = torch.Generator().manual_seed(100 + rank + first)

    failed, window = 0, []
    for step in range(first + 1, 5001):
        x = torch.randn(64, 8, generator=gen) @ basis
        loss = nn.functional.mse_loss(model(x), x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        window.append(loss.item())
        if step % 250 == 0:
            metric = mean(sum(window) / len(window))
            window.clear()
            state = {"net": net.state_dict(), "optimizer": optimizer.state_dict(), "step": step}
            failed = 0 if manager.save(state, step, metric) else failed + 1
            if rank == 0:
                print(f"step {step}: {metric:.5f}")
            if failed >= 3:
                if rank == 0:
                    print("three saves in a row failed, giving up")
                break
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
