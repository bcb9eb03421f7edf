from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class CheckpointManager:
    def __init__(self, root, model, optimizer):
        self.root = Path(root)
        self.model, self.optimizer = model, optimizer
        self.pending = None
        self.save_group = dist.new_group(backend="gloo")

    def save(self, step):
        if self.pending is not None:
            self.pending.result()
        state = {"model": self.model.module.state_dict(), "step": torch.tensor(step)}
        self.pending = dcp.async_save(
            state, checkpoint_id=str(self.root / f"step_{step}"), process_group=self.save_group
        )
        dist.barrier()

    def close(self):
        if self.pending is not None:
            self.pending.result()


def train(model, optimizer, manager, steps, every):
    for step in range(1, steps + 1):
        x = torch.randn(16, 24)
        loss = model(x).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % every == 0:
            manager.save(step)
    manager.close()


def main():
    dist.init_process_group("cpu:gloo", timeout=timedelta(minutes=3))
    model = DDP(nn.Sequential(nn.Linear(24, 48), nn.SiLU(), nn.Linear(48, 8)))
    optimizer = torch.optim.AdamW(model.parameters())
    manager = CheckpointManager("/tmp/forge", model, optimizer)
    train(model, optimizer, manager, steps=20, every=5)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
