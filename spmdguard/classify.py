"""``@rank_local`` and ``@collective``: after an exception, can this rank still reach the next common
synchronisation point with the same collective sequence as all others?

Yes, rank-local: the error is deferred. No, collective: it is raised at once, and later collectives refuse.
Everything decidable is decided when decorating; the call itself is one flat function.
"""

from __future__ import annotations

import functools
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from typing import Any, ParamSpec, Protocol, TypeVar, overload

from spmdguard import region
from spmdguard.decorated import describe_callable, kind_of
from spmdguard.driving import decorate_resumed
from spmdguard.group import guard
from spmdguard.latch import latch
from spmdguard.work import CollectiveWork, Only, RankLocalWork

__all__ = ["collective", "rank_local"]

_P = ParamSpec("_P")
_R = TypeVar("_R")
_D = TypeVar("_D")
_D_co = TypeVar("_D_co", covariant=True)
_Y = TypeVar("_Y")
_S = TypeVar("_S")


class RankLocalDecorator(Protocol[_D_co]):
    """What ``rank_local(...)`` returns; ``None`` or ``default`` may stand in for the result."""

    @overload
    def __call__(
        self, fn: Callable[_P, Coroutine[Any, Any, _R]], /
    ) -> Callable[_P, Coroutine[Any, Any, _R | _D_co]]: ...
    @overload
    def __call__(
        self, fn: Callable[_P, Generator[_Y, _S, _R]], /
    ) -> Callable[_P, Generator[_Y, _S, _R | _D_co]]: ...
    @overload
    def __call__(
        self, fn: Callable[_P, AsyncGenerator[_Y, _S]], /
    ) -> Callable[_P, AsyncGenerator[_Y, _S]]: ...
    @overload
    def __call__(self, fn: Callable[_P, _R], /) -> Callable[_P, _R | _D_co]: ...


@overload
def rank_local(
    fn: Callable[_P, Coroutine[Any, Any, _R]], /
) -> Callable[_P, Coroutine[Any, Any, _R | None]]: ...
@overload
def rank_local(fn: Callable[_P, Generator[_Y, _S, _R]], /) -> Callable[_P, Generator[_Y, _S, _R | None]]: ...
@overload
def rank_local(fn: Callable[_P, AsyncGenerator[_Y, _S]], /) -> Callable[_P, AsyncGenerator[_Y, _S]]: ...
@overload
def rank_local(fn: Callable[_P, _R], /) -> Callable[_P, _R | None]: ...
@overload
def rank_local(
    *, name: str | None = None, default: _D, only: Only | None = None
) -> RankLocalDecorator[_D]: ...
@overload
def rank_local(*, name: str | None = None, only: Only | None = None) -> RankLocalDecorator[None]: ...
def rank_local(
    fn: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    default: Any = None,
    only: Only | None = None,
) -> Any:
    """Declare a function rank-local: its error is deferred, and no collective starts inside it.

    Works on functions, methods, coroutine functions, generators and asynchronous generators. A generator
    whose error is deferred ends early; do not let its length decide how many collectives run.

    SPMD:
        Rank-local: a collective begun inside raises ``CollectiveInRankLocalError`` instead of starting.
        Called by: any rank; with ``only``, the other ranks skip the work and get ``default``.
        Result: rank-varying.
        Raises on: no rank, except ``KeyboardInterrupt``, ``SystemExit`` and failures of a ``@collective``.

    Args:
        fn: the function, where the decorator is used without arguments.
        name: label in messages; the function's qualified name without it.
        default: the result after a deferred error, and on ranks left out by ``only``.
        only: ``"main"`` runs the work on rank 0 only, ``"local_main"`` on local rank 0 of each host.

    Returns:
        The decorated function, or a decorator.

    Raises:
        TypeError: ``fn`` is a class, a property, a static or class method (decorate the function below it).
        ValueError: ``only`` is something else.
    """
    if only not in (None, "main", "local_main"):
        raise ValueError(f'only must be "main", "local_main" or None, got {only!r}')

    def decorate(function: Callable[..., Any]) -> Any:
        kind = kind_of(function, "rank_local")
        work = RankLocalWork(name or describe_callable(function), default, only)
        if kind == "function":
            return _decorate_rank_local(function, work)
        return decorate_resumed(function, work, kind)

    return decorate if fn is None else decorate(fn)


def _decorate_rank_local(fn: Callable[..., Any], work: RankLocalWork) -> Callable[..., Any]:
    """The hot path: about 1 us over the plain call."""
    name, default, everywhere, thread = work.name, work.default, work.only is None, region.thread

    @functools.wraps(fn)
    def rank_local_call(*args: Any, **kwargs: Any) -> Any:
        if not (everywhere or work.begin()):
            return default
        regions = thread.regions
        depth = len(regions)
        switched = False
        try:
            if not depth:
                switched = guard.switch_on()
            regions.append(name)
            return fn(*args, **kwargs)
        except Exception as exc:
            caught = exc
        finally:
            if switched:
                guard.switch_off()
            del regions[depth:]
        try:
            return work.settle(caught)
        finally:
            del caught

    return rank_local_call


@overload
def collective(fn: Callable[_P, _R], /) -> Callable[_P, _R]: ...
@overload
def collective(*, name: str | None = None) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]: ...
def collective(fn: Callable[..., Any] | None = None, /, *, name: str | None = None) -> Any:
    """Declare a function collective: every rank calls it, and its error is raised at once.

    After an error every guarded collective, ``barrier`` and ``sync_should_stop`` of this rank raises
    ``CommunicationBroken``; an enclosing ``@rank_local`` does not swallow the error.

    SPMD:
        Collective: what the function does.
        Called by: every rank, in the same order.
        Result: what the function returns.
        Raises on: the ranks on which it fails, unchanged, with a note (rank, name, number).

    Args:
        fn: the function, where the decorator is used without arguments.
        name: label in messages; the function's qualified name without it.

    Returns:
        The decorated function, or a decorator.

    Raises:
        TypeError: ``fn`` is a class, a property, a static or class method (decorate the function below it).
    """

    def decorate(function: Callable[..., Any]) -> Any:
        kind = kind_of(function, "collective")
        work = CollectiveWork(name or describe_callable(function))
        return (
            _decorate_collective(function, work)
            if kind == "function"
            else decorate_resumed(function, work, kind)
        )

    return decorate if fn is None else decorate(fn)


def _decorate_collective(fn: Callable[..., Any], work: CollectiveWork) -> Callable[..., Any]:
    """The hot path: about 0.5 us over the plain call."""
    name, thread, current_latch = work.name, region.thread, latch

    @functools.wraps(fn)
    def collective_call(*args: Any, **kwargs: Any) -> Any:
        state = current_latch()
        if state.failure is not None:
            raise state.refuse(name)
        state.num_begun += 1
        collectives = thread.collectives
        depth = len(collectives)
        try:
            collectives.append(name)
            return fn(*args, **kwargs)
        except BaseException as exc:
            work.fail(exc)
            raise
        finally:
            del collectives[depth:]

    return collective_call
