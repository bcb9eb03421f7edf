"""Rank-local work without a decorator: one call, or one block."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

from spmdguard import deferred, region
from spmdguard.decorated import describe_callable
from spmdguard.format import find_user_frame
from spmdguard.latch import is_communication_failure
from spmdguard.work import RankLocalWork

__all__ = ["deferring", "try_or_defer"]

_P = ParamSpec("_P")
_R = TypeVar("_R")


def try_or_defer(fn: Callable[_P, _R], /, *args: _P.args, **kwargs: _P.kwargs) -> _R | None:
    """Call ``fn`` as rank-local work: its result, or None after its error was deferred.

    SPMD:
        Rank-local: a collective begun inside raises ``CollectiveInRankLocalError`` instead of starting.
        Called by: any rank.
        Result: rank-varying.
        Raises on: no rank, except ``KeyboardInterrupt``, ``SystemExit`` and failures of a ``@collective``.

    Args:
        fn: the function; ``args`` and ``kwargs`` are handed on.

    Returns:
        What ``fn`` returns, or None.
    """
    if not callable(fn):
        raise TypeError(
            f"fn must be callable, got {fn!r}; pass the function and its arguments, not its result"
        )
    work = RankLocalWork(describe_callable(fn))
    try:
        result: _R = work.step(_call, fn, args, kwargs)
        return result
    except Exception as exc:
        caught = exc
    try:
        work.settle(caught)
    finally:
        del caught
    return None


def _call(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return fn(*args, **kwargs)


class deferring:
    """Run a block as rank-local work: ``with deferring("write metadata"): ...``.

    SPMD:
        Rank-local: a collective begun inside raises ``CollectiveInRankLocalError`` instead of starting.
        Called by: any rank.
        Result: an error leaves the block early and is deferred; the program goes on after the block.
        Raises on: no rank, except ``KeyboardInterrupt``, ``SystemExit`` and failures of a ``@collective``.

    Args:
        name: label in messages.
    """

    def __init__(self, name: str) -> None:
        if not isinstance(name, str):
            raise TypeError(f'name must be a str, got {name!r}; use `with deferring("write metadata"):`')
        self.name = name
        self._entered: list[tuple[region.opened, BaseException | None]] = []

    def __enter__(self) -> None:
        """Open the region."""
        opened = region.opened(self.name)
        self._entered.append((opened, sys.exc_info()[1]))
        opened.__enter__()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        """Close the region and defer the block's error."""
        opened, outer = self._entered.pop()
        opened.__exit__(kind, exc, traceback)
        if not isinstance(exc, Exception) or is_communication_failure(exc, outer):
            return False
        deferred.defer(exc, self.name, find_user_frame())
        return True
