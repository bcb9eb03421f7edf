import datetime as dt
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

import torch
import torch.distributed as dist


@dataclass
class PipelineConfig:
    job_name: str = "policy"
    output_dir: Optional[Path] = None
    steps: int = 300
    save_freq: int = 100

    def validate(self):
        if self.steps % self.save_freq:
            raise ValueError("steps must be a multiple of save_freq")
        if self.output_dir is None:
            now = dt.datetime.now()
            day, clock = now.strftime("%Y-%m-%d"), now.strftime("%H-%M-%S")
            self.output_dir = Path("outputs") / day / f"{clock}_{self.job_name}"


class ShardedAdam:
    """Keeps the moments of this process's slice only."""

    def __init__(self, size, rank, world):
        self.slice = slice(rank * size // world, (rank + 1) * size // world)
        self.moment = torch.zeros(self.slice.stop - self.slice.start)

    def step(self, weight, grad):
        self.moment.mul_(0.9).add_(grad[self.slice], alpha=0.1)
        weight[self.slice] -= 1e-3 * self.moment


def save(cfg, step, weight, optimizer):
    rank = dist.get_rank()
    folder = cfg.output_dir / "checkpoints" / f"{step:06d}"
    os.makedirs(folder, exist_ok=True)
    torch.save(optimizer.moment, folder / f"optim_{rank:02d}.pt")
    torch.save(torch.get_rng_state(), folder / f"random_{rank:02d}.pt")
    if rank == 0:
        torch.save(weight, folder / "model.pt")
    dist.barrier()


def train(cfg: PipelineConfig):
    cfg.validate()
    rank, world = dist.get_rank(), dist.get_world_size()
    weight = torch.zeros(1024)
    optimizer = ShardedAdam(1024, rank, world)
    for step in range(1, cfg.steps + 1):
        grad = weight - torch.randn(1024)
        dist.all_reduce(grad)
        optimizer.step(weight, grad / world)
        for owner in range(world):
            part = slice(owner * 1024 // world, (owner + 1) * 1024 // world)
            dist.broadcast(weight[part], src=owner)
        if step % cfg.save_freq == 0:
            save(cfg, step, weight, optimizer)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    train(PipelineConfig())
    dist.destroy_process_group()
