"""Lightning Fabric, guarded: a report that fails on the main rank stops both ranks after the same step.

torchrun --nproc-per-node 2 docs/examples/fabric_guarded.py
torchrun --nproc-per-node 2 docs/examples/fabric_guarded.py --fail-at 3
"""

from __future__ import annotations

import argparse

import torch
from lightning.fabric import Fabric
from torch import nn

import spmdguard
from spmdguard.integrations.lightning import guard_fabric


@spmdguard.rank_local(only="main")
def upload(step: int, loss: float, fail_at: int) -> None:
    if step == fail_at:
        raise OSError("metrics server is down")
    print(f"step {step}: loss {loss:.3f}", flush=True)


def train(fail_at: int) -> None:
    fabric = guard_fabric(Fabric(accelerator="cpu", devices=2, strategy="ddp"))
    fabric.launch()
    torch.manual_seed(fabric.global_rank)
    model = nn.Linear(8, 1)
    model, optimizer = fabric.setup(model, torch.optim.SGD(model.parameters(), lr=0.01))
    for step in range(6):
        loss = model(torch.randn(16, 8)).square().mean()
        fabric.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        upload(step, loss.item(), fail_at)
        if spmdguard.sync_should_stop():
            break
    fabric.barrier()
    print(f"rank {fabric.global_rank} left after step {step}: {spmdguard.stop_reason()}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--fail-at", type=int, default=-1)
    given = parser.parse_args()
    spmdguard.run(lambda: train(given.fail_at), exit_process=True)
