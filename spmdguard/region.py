"""What this thread is doing now: rank-local regions and guarded collectives, with their nesting.

While at least one rank-local region is open, ``spmdguard.group.guard`` refuses every collective that this
thread begins. Threads started by a region, and work it submits to a thread pool, are in the region too.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any

from spmdguard.deferred import defer
from spmdguard.group import guard
from spmdguard.latch import is_communication_failure

__all__ = ["current_collective", "current_region"]


class _Thread(threading.local):
    """Open regions and collectives of one thread, innermost last."""

    def __init__(self) -> None:
        self.regions: list[str] = []
        self.collectives: list[str] = []
        self.submits = False


thread = _Thread()


def current_region() -> str | None:
    """Name of the innermost rank-local region of this thread; None outside."""
    regions = thread.regions
    return regions[-1] if regions else None


def current_collective() -> str | None:
    """Name of the innermost guarded collective of this thread; None outside."""
    collectives = thread.collectives
    return collectives[-1] if collectives else None


class opened:
    """A rank-local region around a block; the decorators do the same in line, for speed."""

    __slots__ = ("_depth", "_switched", "name")

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> None:
        regions = thread.regions
        self._depth = len(regions)
        self._switched = not regions and guard.switch_on()
        regions.append(self.name)

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        del thread.regions[self._depth :]
        if self._switched:
            guard.switch_off()


def describe_region() -> str | None:
    """The region for a message: ``"rank-local 'upload_metrics'"``, with the collective that it runs in."""
    here = thread
    if not here.regions:
        return None
    text = f"rank-local {here.regions[-1]!r}"
    return f"{text}, collective {here.collectives[-1]!r}" if here.collectives else text


def _run_inside(name: str, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    with opened(name):
        return call(*args, **kwargs)


def _run_thread(name: str, run: Callable[[], Any]) -> None:
    """A thread's error would be printed and forgotten; it is the work's own, so it is deferred."""
    try:
        _run_inside(name, run)
        return
    except Exception as exc:
        caught = exc
    try:
        if is_communication_failure(caught):
            raise caught
        defer(caught, name, None)
    finally:
        del caught


def inherit_regions() -> None:
    """Let threads started inside a region, and work submitted to a thread pool there, be inside it too.

    A pool's worker outlives the region that happened to start it, so work inherits when it is submitted and
    the worker itself does not.
    """
    start = threading.Thread.start
    submit: Any = ThreadPoolExecutor.submit

    @functools.wraps(start)
    def start_inside(self: threading.Thread) -> None:
        regions = thread.regions
        if regions and not thread.submits:
            run: Any = functools.partial(_run_thread, regions[-1], self.run)
            self.run = run  # type: ignore[method-assign]  # shadows the method on this thread object only
        start(self)

    @functools.wraps(submit)
    def submit_inside(self: ThreadPoolExecutor, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
        regions = thread.regions
        if not regions:
            return submit(self, fn, *args, **kwargs)
        thread.submits = True
        try:
            return submit(self, _run_inside, regions[-1], fn, *args, **kwargs)
        finally:
            thread.submits = False

    threading.Thread.start = start_inside  # type: ignore[method-assign]
    ThreadPoolExecutor.submit = submit_inside  # type: ignore[method-assign, assignment]


guard.find_region = describe_region
guard.on_install.append(inherit_regions)
