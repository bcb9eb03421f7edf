"""The deferred error of this process: keep the first, log the rest, re-raise and clear.

An error of rank-local work must not take its rank out of the common sequence of collectives. It is kept
here, the rank goes on, all ranks agree to stop (``sync_should_stop``), and it is raised after the process
group is destroyed.
"""

from __future__ import annotations

import logging
import threading
import time
from types import FrameType

from spmdguard.current import PerProcess
from spmdguard.detach import detach
from spmdguard.format import add_note, find_user_frame, format_exception_line, format_place
from spmdguard.group.world import world
from spmdguard.latch import is_communication_failure

__all__ = ["defer_error", "deferred_error", "has_deferred_error", "raise_if_deferred_error"]

logger = logging.getLogger("spmdguard")


class DeferredStore:
    """The first error, how many came later, and since when; every method may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.first: Exception | None = None
        self.num_later = 0
        self.since: float = 0.0

    def keep(self, exc: Exception) -> bool:
        """Keep ``exc`` if it is the first, else count it; returns whether it is the one kept."""
        with self._lock:
            if self.first is None:
                self.first = exc
                self.num_later = 0
                self.since = time.time()
                return True
            if exc is self.first:
                return True
            self.num_later += 1
            return False

    def take(self) -> tuple[Exception | None, int]:
        """Remove and return the first error and the number of later ones."""
        with self._lock:
            taken = self.first, self.num_later
            self.first = None
            self.num_later = 0
            return taken


store: PerProcess[DeferredStore] = PerProcess(DeferredStore)


def defer_error(exc: Exception) -> None:
    """Keep an error of rank-local work until the process group is destroyed, instead of raising it.

    The first error of the process is kept with its traceback, but without the locals of its frames; later
    ones are logged with their traceback and counted in a note on the first.

    SPMD:
        Rank-local: no communication.
        Called by: any rank, at any time, from any thread.
        Result: none; ``has_deferred_error()`` becomes true on this rank, and the next
            ``sync_should_stop()`` is true on every rank.
        Raises on: this rank, where ``exc`` came out of a ``@collective``: such a failure cannot be deferred.

    Args:
        exc: the error; an ``Exception``.

    Raises:
        TypeError: ``exc`` is no ``Exception``; ``KeyboardInterrupt`` and ``SystemExit`` are never deferred.
    """
    if not isinstance(exc, Exception):
        raise TypeError(f"exc must be an Exception, got {exc!r}; let it leave the process instead")
    if is_communication_failure(exc):
        raise exc
    defer(exc, "defer_error", find_user_frame())


def defer(exc: Exception, label: str, caller: FrameType | None) -> None:
    """Keep or count ``exc``, which came out of the work ``label`` called at ``caller``."""
    kept = store()
    detach(exc)
    place = format_place(caller)
    if kept.keep(exc):
        add_note(exc, f"deferred by spmdguard in {label!r} (called at {place})")
        logger.error(
            "spmdguard: rank %d deferred an error of %r (called at %s) and goes on until all ranks agree to stop:\n%s",
            world().rank(),
            label,
            place,
            format_exception_line(exc),
        )
    else:
        logger.warning(
            "spmdguard: rank %d: a further error in %r (called at %s) is not kept, only counted:\n%s",
            world().rank(),
            label,
            place,
            format_exception_line(exc),
            exc_info=(type(exc), exc, exc.__traceback__),
        )


def has_deferred_error() -> bool:
    """Whether an error of rank-local work waits on this rank.

    SPMD:
        Rank-local: no communication.
        Called by: any rank, from any thread.
        Result: rank-varying; branch on ``sync_should_stop()``, never on this, around a collective.
        Raises on: no rank.
    """
    return store().first is not None


def deferred_error() -> Exception | None:
    """The first deferred error of this rank, still deferred; None without one.

    SPMD:
        Rank-local: no communication.
        Called by: any rank, from any thread.
        Result: rank-varying.
        Raises on: no rank.
    """
    return store().first


def raise_if_deferred_error() -> None:
    """Re-raise this rank's first deferred error, the original object with its traceback, and clear it.

    SPMD:
        Rank-local: no communication.
        Called by: every rank, after the process group is destroyed; raising earlier leaves the others
            waiting in their next collective.
        Result: none without a deferred error.
        Raises on: the ranks that deferred an error.

    Raises:
        Exception: the deferred error.
    """
    error, num_later = store().take()
    if error is None:
        return
    if num_later:
        add_note(
            error,
            f"spmdguard: {num_later} later error{'s were' if num_later > 1 else ' was'} deferred "
            "on this rank after this one; their tracebacks are in the log",
        )
    try:
        raise error
    finally:
        del error
