"""A plain loop in the style of torchtitan: FSDP2, gradient accumulation, checkpoints, preemption.

    torchrun --nproc-per-node 2 docs/examples/titan_style.py
    torchrun --nproc-per-node 2 docs/examples/titan_style.py --fail-at 3
    torchrun --nproc-per-node 2 docs/examples/titan_style.py --preempt-at 2

A metric that cannot be written on the main rank, a ``SIGTERM`` that reaches one rank, or the time limit: all
ranks leave after the same optimizer step and save. The next run goes on from there.
"""

from __future__ import annotations

import argparse
import os
import signal
import tempfile
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

import spmdguard

ACCUMULATE = 2


class Trainer:
    """Model, optimizer, step: what is saved and loaded."""

    def __init__(self, output: Path) -> None:
        torch.manual_seed(0)
        self.model: Any = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))
        fully_shard(self.model, mesh=init_device_mesh("cpu", (dist.get_world_size(),)))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=0.01)
        self.output = output
        self.step = 0

    def state(self) -> dict[str, Any]:
        model, optimizer = get_state_dict(self.model, self.optimizer)
        return {"model": model, "optimizer": optimizer, "step": self.step}

    @spmdguard.collective
    def load(self) -> None:
        found = spmdguard.latest_checkpoint(self.output)
        if found is None:
            return
        state = self.state()
        dcp.load(state, checkpoint_id=found)
        set_state_dict(
            self.model, self.optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"]
        )
        self.step = state["step"]

    def save(self) -> Path | None:
        return spmdguard.save_checkpoint(
            self.output,
            step=self.step,
            save_state=lambda path: dcp.save(self.state(), checkpoint_id=path),
            keep_last=2,
        )

    @spmdguard.collective
    def train_step(self) -> torch.Tensor:
        """Forward and backward of every micro-batch, one update."""
        total = torch.zeros(())
        for micro in range(ACCUMULATE):
            torch.manual_seed(1000 * self.step + 10 * micro + dist.get_rank())
            loss = self.model(torch.randn(8, 16)).square().mean() / ACCUMULATE
            loss.backward()
            total += loss.detach()
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.step += 1
        dist.all_reduce(total)
        return total / dist.get_world_size()


class Metrics:
    """Written on the main rank; the disk is full from one step on."""

    def __init__(self, fail_at: int) -> None:
        self.fail_at = fail_at

    def log(self, step: int, loss: float) -> None:
        if step == self.fail_at:
            raise OSError("no space left on device")
        print(f"step {step}: loss {loss:.3f}", flush=True)


def train(given: argparse.Namespace) -> None:
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    metrics = spmdguard.rank_local_object(make=lambda: Metrics(given.fail_at), only="main")
    trainer = Trainer(given.output)
    trainer.load()
    with spmdguard.stop_after(timedelta(minutes=50)):
        while trainer.step < given.steps:
            loss = trainer.train_step()
            metrics.log(trainer.step, loss.item())
            if rank == 1 and trainer.step == given.preempt_at:
                os.kill(os.getpid(), signal.SIGTERM)
            if spmdguard.sync_should_stop():
                break
    saved = trainer.save()
    reason, name = spmdguard.stop_reason(), saved and saved.name
    print(f"rank {rank} left after step {trainer.step}: {reason}; saved {name}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--fail-at", type=int, default=-1)
    parser.add_argument("--preempt-at", type=int, default=-1)
    parser.add_argument("--output", type=Path, default=Path(tempfile.gettempdir()) / "titan_example")
    arguments = parser.parse_args()
    with spmdguard.stop_on_signal():
        spmdguard.run(lambda: train(arguments), exit_process=True)
