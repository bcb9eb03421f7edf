"""What this thread is doing now: rank-local regions and guarded collectives, with their nesting.

While at least one rank-local region is open, ``spmdguard.group.guard`` refuses every collective that this
thread begins. Threads started by a region, and work it submits to a thread pool, are in the region too.
"""

from __future__ import annotations

import threading
from types import TracebackType

from spmdguard.group import guard

__all__ = ["current_collective", "current_region"]


class _Thread(threading.local):
    """Open regions and collectives of one thread, innermost last."""

    def __init__(self) -> None:
        self.regions: list[str] = []
        self.collectives: list[str] = []


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


guard.find_region = describe_region
