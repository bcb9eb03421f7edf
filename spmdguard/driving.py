"""Run classified work that is resumed more than once: coroutines, generators, asynchronous generators.

Terms: *work* is one decorated function (``spmdguard.work``); its ``step`` runs one piece of it in the right
thread state, its ``settle`` decides what becomes of an exception. Between two pieces other code runs on the
same thread, so the state is entered and left around every piece.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Generator
from typing import Any, Protocol


class Work(Protocol):
    """What a classification does with its function."""

    @property
    def default(self) -> Any: ...

    def begin(self) -> bool: ...

    def step(self, run: Callable[..., Any], *args: Any) -> Any: ...

    def settle(self, exc: BaseException) -> Any: ...


def decorate_resumed(fn: Callable[..., Any], work: Work, kind: str) -> Callable[..., Any]:
    """Wrap a coroutine function, generator or asynchronous generator; the wrapper is of the same kind."""
    wrap = {
        "coroutine": _wrap_coroutine,
        "generator": _wrap_generator,
        "async generator": _wrap_async_generator,
    }
    return functools.wraps(fn)(wrap[kind](fn, work))


def _wrap_coroutine(fn: Callable[..., Any], work: Work) -> Callable[..., Any]:
    async def coroutine(*args: Any, **kwargs: Any) -> Any:
        if not work.begin():
            return work.default
        return await _drive_awaitable(fn(*args, **kwargs), work)

    return coroutine


def _wrap_generator(fn: Callable[..., Any], work: Work) -> Callable[..., Any]:
    def generator(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        if not work.begin():
            return work.default
        return (yield from drive(fn(*args, **kwargs), work, consumer_throws=True))

    return generator


def _wrap_async_generator(fn: Callable[..., Any], work: Work) -> Callable[..., Any]:
    async def async_generator(*args: Any, **kwargs: Any) -> Any:
        if not work.begin():
            return
        inner = fn(*args, **kwargs)
        resume, given, thrown = inner.asend, None, None
        while True:
            try:
                item = await _drive_awaitable(resume(given), _Unsettled(work))
            except StopAsyncIteration:
                return
            except BaseException as exc:
                caught = exc
                break
            try:
                given = yield item
                resume, thrown = inner.asend, None
            except GeneratorExit:
                await inner.aclose()
                raise
            except BaseException as exc:
                resume, given, thrown = inner.athrow, exc, exc
        try:
            if caught is thrown:
                raise caught
            work.settle(caught)
        finally:
            del caught, thrown, given

    return async_generator


def drive(inner: Any, work: Work, *, consumer_throws: bool) -> Generator[Any, Any, Any]:
    """``yield from inner`` with every piece run by ``work``.

    An exception that the consumer threw in and that comes out again is the consumer's, not the work's, where
    ``consumer_throws``; a coroutine is given the outcome of what it awaits that way, which is its own.
    """
    resume: Callable[..., Any] = inner.send
    given: Any = None
    thrown: BaseException | None = None
    while True:
        try:
            item = work.step(resume, given)
        except StopIteration as stop:
            return stop.value
        except BaseException as exc:
            caught = exc
            break
        try:
            given = yield item
            resume, thrown = inner.send, None
        except GeneratorExit:
            _close(inner, work)
            raise
        except BaseException as exc:
            resume, given, thrown = inner.throw, exc, exc
    try:
        if caught is thrown and consumer_throws:
            raise caught
        return work.settle(caught)
    finally:
        del caught, thrown, given


def _close(inner: Any, work: Work) -> None:
    try:
        work.step(inner.close)
        return
    except Exception as exc:
        caught = exc
    work.settle(caught)


@types.coroutine
def _drive_awaitable(inner: Any, work: Work) -> Generator[Any, Any, Any]:
    return (yield from drive(inner, work, consumer_throws=False))


class _Unsettled:
    """Runs pieces as ``work`` does, but hands exceptions on."""

    default = None

    def __init__(self, work: Work) -> None:
        self.step = work.step

    def begin(self) -> bool:
        return True

    def settle(self, exc: BaseException) -> Any:
        raise exc
