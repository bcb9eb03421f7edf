"""Accelerate, guarded: a tracker that fails on the main rank stops both ranks after the same step.

torchrun --nproc-per-node 2 docs/examples/accelerate_guarded.py
torchrun --nproc-per-node 2 docs/examples/accelerate_guarded.py --fail-at 3
"""

from __future__ import annotations

import argparse
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.tracking import GeneralTracker, on_main_process
from torch import nn

import spmdguard
from spmdguard.integrations.accelerate import guard_accelerator


class Console(GeneralTracker):
    """A tracker whose server is down from one step on."""

    name = "console"
    requires_logging_directory = False

    def __init__(self, fail_at: int) -> None:
        super().__init__()
        self.fail_at = fail_at

    @property
    def tracker(self) -> None:
        return None

    def store_init_configuration(self, values: dict[str, Any]) -> None: ...

    @on_main_process
    def log(self, values: dict[str, Any], step: int | None = None, **kwargs: Any) -> None:
        if step == self.fail_at:
            raise OSError("the tracking server is down")
        print(f"step {step}: {values}", flush=True)


def train(fail_at: int) -> None:
    accelerator = guard_accelerator(Accelerator(cpu=True, log_with=Console(fail_at)))
    accelerator.init_trackers("example")
    torch.manual_seed(accelerator.process_index)
    model: Any = nn.Linear(8, 1)
    optimizer: Any = torch.optim.SGD(model.parameters(), lr=0.01)
    model, optimizer = accelerator.prepare(model, optimizer)
    for step in range(6):
        loss = model(torch.randn(16, 8)).square().mean()
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        accelerator.log({"loss": round(loss.item(), 3)}, step=step)
        if spmdguard.sync_should_stop():
            break
    accelerator.wait_for_everyone()
    print(f"rank {accelerator.process_index} left after step {step}: {spmdguard.stop_reason()}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--fail-at", type=int, default=-1)
    given = parser.parse_args()
    spmdguard.run(lambda: train(given.fail_at), exit_process=True)
