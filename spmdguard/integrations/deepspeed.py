"""DeepSpeed: the engine's passes, steps and checkpoints are collective."""

from __future__ import annotations

from typing import Any, TypeVar

from spmdguard.integrations.methods import classify_methods, guard_forward

__all__ = ["guard_engine"]

_E = TypeVar("_E")
COLLECTIVES = (
    "backward",
    "step",
    "allreduce_gradients",
    "save_checkpoint",
    "load_checkpoint",
    "save_16bit_model",
    "train_batch",
    "eval_batch",
)


def guard_engine(engine: _E) -> _E:
    """Guard a DeepSpeed engine: every pass, step and checkpoint is as if decorated with ``@collective``.

    For a checkpoint that survives a kill, hand its method to ``save_checkpoint``:
    ``save_checkpoint(folder, step=step, save_state=lambda path: engine.save_checkpoint(path))``.

    SPMD:
        Rank-local: no communication.
        Called by: every rank, right after ``deepspeed.initialize``.
        Result: the same object.
        Raises on: no rank.

    Args:
        engine: the object; it is changed in place. Doing it again changes nothing.
    """
    guard_forward(engine, "forward of the engine")
    target: Any = engine
    classify_methods(target, collectives=COLLECTIVES, prefix="engine")
    return engine
