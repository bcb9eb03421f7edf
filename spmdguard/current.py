"""What belongs to one process: the real one, or one simulated rank of a thread.

Every piece of per-process state of this package is a ``PerProcess``. In a real run there is one value of
each; ``spmdguard.testing`` gives each simulated rank (a thread) its own through ``simulated_process``.
A forked child starts with fresh values.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

_T = TypeVar("_T")


class _Thread(threading.local):
    values: dict[PerProcess[Any], Any] | None = None


_thread = _Thread()
_known: list[PerProcess[Any]] = []


class PerProcess(Generic[_T]):
    """``store = PerProcess(Store)``: one value per process; ``store()`` is that of the calling process."""

    def __init__(self, factory: Callable[[], _T]) -> None:
        self._factory = factory
        self._real = factory()
        _known.append(self)

    def __call__(self) -> _T:
        values = _thread.values
        if values is None:
            return self._real
        try:
            value: _T = values[self]
        except KeyError:
            value = values[self] = self._factory()
        return value

    def reset(self) -> None:
        """Start again with a fresh value for the real process."""
        self._real = self._factory()


@contextlib.contextmanager
def simulated_process(values: dict[PerProcess[Any], Any]) -> Iterator[None]:
    """Let the calling thread act as a process of its own whose state lives in ``values``.

    Values that are missing are created on first use. Threads started inside do not inherit it.
    """
    before = _thread.values
    _thread.values = values
    try:
        yield
    finally:
        _thread.values = before


def simulated_values() -> dict[PerProcess[Any], Any] | None:
    """The state of the simulated process that the calling thread acts as, to hand on to a helper thread."""
    return _thread.values


def _reset_after_fork() -> None:
    _thread.values = None
    for known in _known:
        known.reset()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)
