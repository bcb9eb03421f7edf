"""Weights & Biases: exit code 0 (finished) only where nothing failed; the summary holds the root cause."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from spmdguard.reporters.base import Reporter, call_within
from spmdguard.reporters.outcome import Outcome


class WandbReporter(Reporter):
    """Report a run to Weights & Biases: ``run(train, reporter=WandbReporter(project="pretraining"))``.

    A failed run has ``spmdguard/cause`` and ``spmdguard/traceback`` in its summary.

    SPMD:
        Rank-local: no communication.
        Called by: every rank; all but the main one do nothing.
        Result: none.
        Raises on: no rank, except the main one where closing fails and no process group is left.

    Args:
        close_timeout_s: seconds that sending the rest may take at the end.
        init: handed to ``wandb.init``: ``project``, ``name``, ``config``, ``mode``, ...
    """

    name = "Weights & Biases reporter"

    def __init__(self, *, close_timeout_s: float = 120.0, **init: Any) -> None:
        super().__init__()
        if not close_timeout_s > 0:
            raise ValueError(f"close_timeout_s must be a positive number of seconds, got {close_timeout_s!r}")
        self.run: Any = None
        self._close_timeout_s = close_timeout_s
        self._init = init

    def _open(self) -> None:
        wandb: Any = import_module("wandb")

        self.run = wandb.init(**self._init)

    def _log(self, metrics: Mapping[str, float], step: int | None) -> None:
        self.run.log(dict(metrics), step=step)

    def _close(self, outcome: Outcome, exc: BaseException | None) -> None:
        def finish() -> None:
            try:
                if outcome.cause:
                    self.run.summary["spmdguard/cause"] = outcome.cause
                if outcome.traceback:
                    self.run.summary["spmdguard/traceback"] = outcome.traceback
            finally:
                self.run.finish(exit_code=outcome.exit_code)

        call_within(finish, self._close_timeout_s, "wandb.finish")
