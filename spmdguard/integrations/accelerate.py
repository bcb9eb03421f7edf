"""Accelerate: what its ``Accelerator`` does together is collective, what it reports is rank-local."""

from __future__ import annotations

import functools
from typing import Any, TypeVar

from spmdguard.integrations.methods import classify_methods, guard_forward

__all__ = ["guard_accelerator"]

_A = TypeVar("_A")
COLLECTIVES = (
    "wait_for_everyone",
    "backward",
    "clip_grad_norm_",
    "gather",
    "gather_for_metrics",
    "reduce",
    "pad_across_processes",
    "save_state",
    "load_state",
    "get_state_dict",
    "save_model",
    "check_trigger",
)
RANK_LOCAL = ("init_trackers", "log", "log_images", "print")


def guard_accelerator(accelerator: _A) -> _A:
    """Guard an ``accelerate.Accelerator``: call it right after making it, before ``prepare``.

    Its collectives and barriers, and the forward pass of every module that it prepares, are as if decorated
    with ``@collective``; what it writes to trackers and to the terminal as if with ``@rank_local``: a tracker
    that is down stops all ranks together. Leave the loop with ``if sync_should_stop(): break``, and put
    ``run()`` around the training instead of calling ``end_training`` in an exception path.

    SPMD:
        Rank-local: no communication.
        Called by: every rank, before training.
        Result: the same object.
        Raises on: no rank.

    Args:
        accelerator: the object; it is changed in place. Doing it again changes nothing.
    """
    target: Any = accelerator
    if "prepare" not in target.__dict__:
        prepare = target.prepare

        @functools.wraps(prepare)
        def prepare_guarded(*args: Any, **kwargs: Any) -> Any:
            prepared = prepare(*args, **kwargs)
            for each in prepared if isinstance(prepared, tuple) else (prepared,):
                if hasattr(each, "register_forward_pre_hook"):
                    guard_forward(each, f"forward of {type(each).__name__}")
            return prepared

        target.__dict__["prepare"] = prepare_guarded
    classify_methods(target, collectives=COLLECTIVES, rank_locals=RANK_LOCAL, prefix="accelerator")
    return accelerator
