"""Lightning: a callback for its ``Trainer``, and a guard for ``Fabric``; for either of its two packages."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any, TypeVar

from spmdguard.integrations.methods import classify_methods
from spmdguard.latch import latch
from spmdguard.primary import write_primary_error
from spmdguard.stop import sync_should_stop

__all__ = ["SpmdguardCallback", "guard_fabric"]

_F = TypeVar("_F")
FABRIC_COLLECTIVES = (
    "barrier",
    "broadcast",
    "all_gather",
    "all_reduce",
    "backward",
    "clip_gradients",
    "save",
    "load",
)
FABRIC_RANK_LOCAL = ("log", "log_dict", "print")


def _find_base() -> Any:
    """The package that the program uses: both may be installed, and their classes are not the same."""
    names = ("lightning.pytorch", "pytorch_lightning")
    for name in (*(name for name in names if name in sys.modules), *names):
        try:
            return import_module(name).Callback
        except ImportError:
            continue
    raise ImportError("neither lightning nor pytorch-lightning is installed")


class SpmdguardCallback(_find_base()):  # type: ignore[misc]  # found at run time
    """Stop a ``Trainer`` on every rank after the same optimizer step, as soon as one rank asks.

    Ranks ask by a deferred error, a signal or a time limit, never by setting ``trainer.should_stop`` alone.
    An exception that leaves the trainer is written before Lightning tears down. Put ``run()`` around
    ``trainer.fit``: it raises the deferred error at the end. Lightning goes on to ``min_epochs`` and
    ``min_steps`` whatever is asked.

    SPMD:
        Collective: one ``sync_should_stop`` after each optimizer step.
        Called by: every rank, as one of ``Trainer(callbacks=[...])``.
        Result: none.
        Raises on: every rank that came, where some ranks never come.

    Args:
        every_n_steps: agree after every n-th optimizer step only.
        overlap: agree one step late, without waiting.
    """

    def __init__(self, *, every_n_steps: int = 1, overlap: bool = False) -> None:
        if every_n_steps < 1:
            raise ValueError(f"every_n_steps must be at least 1, got {every_n_steps!r}")
        self._every_n_steps = every_n_steps
        self._overlap = overlap
        self._last_step = -1

    def on_train_batch_end(self, trainer: Any, *args: Any, **kwargs: Any) -> None:
        """Agree where the batch ended an optimizer step: not between accumulated micro-batches."""
        if trainer.global_step == self._last_step:
            return
        self._last_step = trainer.global_step
        if sync_should_stop(every_n_steps=self._every_n_steps, overlap=self._overlap):
            trainer.should_stop = True

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """Write the error, and refuse guarded collectives of teardown code: the others may not come."""
        write_primary_error(exception)
        latch().close(exception, "trainer")


def guard_fabric(fabric: _F) -> _F:
    """Guard a ``Fabric``: its collectives are as if decorated with ``@collective``, its reports ``@rank_local``.

    SPMD:
        Rank-local: no communication.
        Called by: every rank, before training.
        Result: the same object.
        Raises on: no rank.

    Args:
        fabric: the object; it is changed in place. Doing it again changes nothing.
    """
    classify_methods(fabric, collectives=FABRIC_COLLECTIVES, rank_locals=FABRIC_RANK_LOCAL, prefix="fabric")
    return fabric
