"""Classify the methods of an object that a framework made, and the forward pass of its modules.

Methods are replaced on the object itself, so that its class and other objects stay as they are. A module's
forward pass is guarded by hooks, not replaced: hooks survive ``copy.deepcopy`` of the module, a replaced
``forward`` would go on calling the original.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from spmdguard import region
from spmdguard.classify import collective, rank_local
from spmdguard.latch import latch

_MARK = "__spmdguard_classified__"


def classify_methods(
    obj: Any, *, collectives: Iterable[str] = (), rank_locals: Iterable[str] = (), prefix: str = ""
) -> None:
    """Make the named methods collective or rank-local; names that the object lacks are passed over.

    Doing it again changes nothing.
    """
    done: set[str] = obj.__dict__.setdefault(_MARK, set())
    for names, decorate in ((collectives, collective), (rank_locals, rank_local)):
        for name in names:
            method = getattr(obj, name, None)
            if method is None or name in done:
                continue
            done.add(name)
            guarded: Any = decorate(name=f"{prefix or type(obj).__name__}.{name}")(method)
            obj.__dict__[name] = guarded  # a module's own __setattr__ would look at the value


def guard_forward(module: Any, name: str) -> Any:
    """Make every forward pass of ``module`` a guarded collective; the module itself."""
    if module.__dict__.get(_MARK):
        return module
    module.__dict__[_MARK] = {"forward"}
    module.register_forward_pre_hook(_Begin(name))
    module.register_forward_hook(_end, always_call=True)
    return module


class _Begin:
    """Counts the call, or refuses it after a failure; a class, so that copies share nothing."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, module: Any, inputs: Any) -> None:
        state = latch()
        if state.failure is not None:
            raise state.refuse(self.name)
        state.num_begun += 1
        region.thread.collectives.append(self.name)


def _end(module: Any, inputs: Any, outputs: Any) -> None:
    """Also called where the forward pass raises, then while the exception is handled."""
    collectives = region.thread.collectives
    if not collectives:
        return  # the pass was refused
    name = collectives.pop()
    failure = sys.exc_info()[1]
    if failure is not None and outputs is None:
        latch().close(failure, name)
