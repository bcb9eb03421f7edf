"""Hugging Face Trainer, guarded: a callback that fails on the main rank stops both ranks after the same step.

torchrun --nproc-per-node 2 docs/examples/transformers_guarded.py
torchrun --nproc-per-node 2 docs/examples/transformers_guarded.py --fail-at 3
"""

from __future__ import annotations

import argparse
import tempfile
from typing import Any

import torch
from torch import nn
from transformers import Trainer, TrainerCallback, TrainingArguments

import spmdguard
from spmdguard.integrations.transformers import guard_trainer


class Regression(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 1)

    def forward(self, inputs: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"loss": self.layer(inputs).square().mean()}


class Upload(TrainerCallback):
    """Reports from the main rank; its server is down from one step on."""

    def __init__(self, fail_at: int) -> None:
        self.fail_at = fail_at

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
        if not state.is_world_process_zero:
            return
        if state.global_step - 1 == self.fail_at:
            raise OSError("metrics server is down")
        print(f"step {state.global_step - 1}: {logs}", flush=True)


def train(fail_at: int) -> None:
    arguments = TrainingArguments(
        output_dir=tempfile.mkdtemp(),
        max_steps=6,
        per_device_train_batch_size=4,
        logging_steps=1,
        save_strategy="no",
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
    )
    data = [{"inputs": torch.randn(8)} for _ in range(256)]
    trainer = Trainer(Regression(), arguments, train_dataset=data, callbacks=[Upload(fail_at)])
    guard_trainer(trainer, rank_local=(Upload,))
    trainer.train()
    step, reason = trainer.state.global_step - 1, spmdguard.stop_reason()
    print(f"rank {arguments.process_index} left after step {step}: {reason}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--fail-at", type=int, default=-1)
    given = parser.parse_args()
    spmdguard.run(lambda: train(given.fail_at), exit_process=True)
