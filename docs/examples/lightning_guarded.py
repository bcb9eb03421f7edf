"""Lightning's Trainer, guarded: a logger that fails on the main rank stops both ranks after the same step.

torchrun --nproc-per-node 2 docs/examples/lightning_guarded.py
torchrun --nproc-per-node 2 docs/examples/lightning_guarded.py --fail-at 3
"""

from __future__ import annotations

import argparse
import tempfile
from typing import Any

import lightning.pytorch as pl
import torch
from lightning.pytorch.loggers import CSVLogger
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import spmdguard
from spmdguard.integrations.lightning import SpmdguardCallback


class Regression(pl.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 1)

    def training_step(self, batch: list[torch.Tensor], index: int) -> torch.Tensor:
        loss = self.layer(batch[0]).square().mean()
        self.log("loss", loss)
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.01)


class FailingLogger(CSVLogger):
    """A logger whose disk is full from one step on."""

    fail_at = -1

    def log_metrics(self, metrics: dict[str, Any], step: int | None = None) -> None:
        if step == self.fail_at:
            raise OSError("no space left on device")
        super().log_metrics(metrics, step)


def train(fail_at: int) -> None:
    logger = FailingLogger(tempfile.mkdtemp())
    logger.fail_at = fail_at
    trainer = pl.Trainer(
        accelerator="cpu",
        devices=2,
        strategy="ddp",
        max_steps=6,
        log_every_n_steps=1,
        logger=spmdguard.rank_local_object(logger, only="main"),
        callbacks=[SpmdguardCallback()],
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    data = DataLoader(TensorDataset(torch.randn(256, 8)), batch_size=8)
    trainer.fit(Regression(), data)
    steps, reason = trainer.global_step, spmdguard.stop_reason()
    print(f"rank {trainer.global_rank} left after step {steps - 1}: {reason}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--fail-at", type=int, default=-1)
    given = parser.parse_args()
    spmdguard.run(lambda: train(given.fail_at), exit_process=True)
