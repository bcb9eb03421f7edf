"""Guarded runs of two ranks with a tracker: one that says what it is told, and the real ones."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

import spmdguard
from spmdguard.reporters import MLflowReporter, Outcome, Reporter, WandbReporter, WriterReporter

from .parts import say, start_gloo


class Recorder(Reporter):
    """Says what it is told; one of its methods may fail."""

    name = "recorder"

    def __init__(self, failing: str) -> None:
        super().__init__()
        self.failing = failing

    def maybe(self, what: str) -> None:
        if self.failing == what:
            raise ConnectionError(f"tracker is down: {what}")

    def _open(self) -> None:
        say("open")
        self.maybe("open")

    def _log(self, metrics: Mapping[str, float], step: int | None) -> None:
        self.maybe("log")
        say("log", step, dict(metrics))

    def _close(self, outcome: Outcome, exc: BaseException | None) -> None:
        say("close", outcome.status, outcome.cause)
        self.maybe("close")


def make_reporter(kind: str, failing: str) -> Reporter:
    if kind == "mlflow":
        os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"  # the only store that mlflow-skinny has
        return MLflowReporter(experiment="e", run_name="r", tracking_uri=f"file:{Path.cwd()}/mlruns")
    if kind == "wandb":
        return WandbReporter(project="p", mode="offline", dir=os.getcwd())
    if kind == "tensorboard":
        from torch.utils.tensorboard import SummaryWriter

        return WriterReporter(functools.partial(SummaryWriter, "events"))
    return Recorder(failing)


@spmdguard.rank_local
def local_work(fails: bool) -> None:
    if fails:
        raise OSError("upload")


def tracked(kind: str, failing: str) -> None:
    """``failing``: "main local", "other local", "other at once", "post_train", a tracker's method, or none."""
    reporter = make_reporter(kind, failing)

    def train() -> None:
        rank = start_gloo(120)
        for step in range(3):
            dist.all_reduce(torch.ones(1))
            reporter.log({"loss": 1.0 + step}, step=step)
            local_work(failing == ("main local", "other local")[rank] and step == 1)
            if rank == 1 and failing == "other at once" and step == 1:
                raise OSError("at once")
            if spmdguard.sync_should_stop():
                say("stopped after", step)
                break

    def post_train() -> Any:
        say("post_train", reporter.is_open)
        if failing == "post_train":
            raise OSError("export")

    spmdguard.run(train, post_train=post_train, reporter=reporter, exit_process=True)
