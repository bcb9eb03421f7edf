"""Hugging Face ``Trainer``: an agreed stop after an optimizer step, and reports that cannot hang the job."""

from __future__ import annotations

from importlib import import_module
from typing import Any, TypeVar

from spmdguard.objects import rank_local_object
from spmdguard.stop import sync_should_stop

__all__ = ["SpmdguardTrainerCallback", "guard_trainer"]

_T = TypeVar("_T")


class SpmdguardTrainerCallback(import_module("transformers").TrainerCallback):  # type: ignore[misc]  # at run time
    """Stop a ``Trainer`` on every rank after the same optimizer step, as soon as one rank asks.

    Ranks ask by a deferred error, a signal or a time limit. Put ``run()`` around ``trainer.train()``: it
    raises the deferred error at the end.

    SPMD:
        Collective: one ``sync_should_stop`` after each optimizer step.
        Called by: every rank, as one of ``Trainer(callbacks=[...])``, or by ``guard_trainer``.
        Result: none.
        Raises on: every rank that came, where some ranks never come.

    Args:
        every_n_steps: agree after every n-th optimizer step only.
        overlap: agree one step late, without waiting.
        save: have the trainer save a checkpoint in the step in which it stops.
    """

    def __init__(self, *, every_n_steps: int = 1, overlap: bool = False, save: bool = False) -> None:
        if every_n_steps < 1:
            raise ValueError(f"every_n_steps must be at least 1, got {every_n_steps!r}")
        self._every_n_steps = every_n_steps
        self._overlap = overlap
        self._save = save

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> Any:
        """Called after the optimizer step, once all its micro-batches are accumulated."""
        if sync_should_stop(every_n_steps=self._every_n_steps, overlap=self._overlap):
            control.should_training_stop = True
            control.should_save = control.should_save or self._save
        return control


def guard_trainer(trainer: _T, *, rank_local: tuple[type[Any], ...] = (), **options: Any) -> _T:
    """Add ``SpmdguardTrainerCallback`` to a ``Trainer``, and make the callbacks that report rank-local.

    Those of ``transformers.integrations`` (TensorBoard, MLflow, Weights & Biases, ...), which work on the main
    rank alone, are guarded: their errors are deferred.

    SPMD:
        Rank-local: no communication.
        Called by: every rank, before training.
        Result: the same object.
        Raises on: no rank.

    Args:
        trainer: the object; it is changed in place.
        rank_local: further classes of callbacks that work on one rank alone.
        options: handed to ``SpmdguardTrainerCallback``.
    """
    target: Any = trainer
    callbacks = target.callback_handler.callbacks
    for index, callback in enumerate(callbacks):
        reports = type(callback).__module__.startswith("transformers.integrations")
        if (reports or isinstance(callback, rank_local)) and not hasattr(callback, "__wrapped__"):
            callbacks[index] = rank_local_object(callback)
    if not any(isinstance(each, SpmdguardTrainerCallback) for each in callbacks):
        target.add_callback(SpmdguardTrainerCallback(**options))
    return trainer
