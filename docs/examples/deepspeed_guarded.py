"""DeepSpeed on CPU, guarded: a report that fails on the main rank stops both ranks, after a checkpoint.

torchrun --nproc-per-node 2 docs/examples/deepspeed_guarded.py
torchrun --nproc-per-node 2 docs/examples/deepspeed_guarded.py --fail-at 3
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import deepspeed
import torch
import torch.distributed as dist
from torch import nn

import spmdguard
from spmdguard.integrations.deepspeed import guard_engine

SETTINGS = {
    "train_micro_batch_size_per_gpu": 4,
    "optimizer": {"type": "AdamW", "params": {"lr": 0.01, "torch_adam": True}},
    "zero_optimization": {"stage": 1},
}


@spmdguard.rank_local(only="main")
def upload(step: int, loss: float, fail_at: int) -> None:
    if step == fail_at:
        raise OSError("metrics server is down")
    print(f"step {step}: loss {loss:.3f}", flush=True)


def train(fail_at: int, output: Path) -> None:
    deepspeed.init_distributed("gloo")
    rank = dist.get_rank()
    torch.manual_seed(rank)
    model = nn.Linear(8, 1)
    engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=SETTINGS)
    guard_engine(engine)
    for step in range(6):
        loss = engine(torch.randn(4, 8)).square().mean()
        engine.backward(loss)
        engine.step()
        upload(step, loss.item(), fail_at)
        if spmdguard.sync_should_stop():
            break
    saved = spmdguard.save_checkpoint(output, step=step, save_state=lambda path: engine.save_checkpoint(path))
    print(f"rank {rank} left after step {step}: {spmdguard.stop_reason()}; saved {saved}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--fail-at", type=int, default=-1)
    parser.add_argument("--output", type=Path, default=Path(tempfile.gettempdir()) / "deepspeed_example")
    given = parser.parse_args()
    spmdguard.run(lambda: train(given.fail_at, given.output), exit_process=True)
