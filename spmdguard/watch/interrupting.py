"""Ctrl-C while the main thread is blocked in a collective: Python raises no KeyboardInterrupt there.

A main thread that runs any Python after the signal has got the KeyboardInterrupt, and what it does then is its own
business, collectives included. One that has not moved since before the signal has not.
"""

from __future__ import annotations

import sys
import threading

from spmdguard.watch.observer import Observer
from spmdguard.watch.terminating import Termination

BLOCKED_S = 2.0
PERHAPS_BLOCKED_S = 10.0


class Interruption:
    """Whether this rank was interrupted and its main thread does not know; asked once after each look at it."""

    def __init__(self, termination: Termination) -> None:
        self._termination = termination
        self._mark = 0
        self._patience_s: float | None = None
        self.overdue = False
        """Whether the main thread has been blocked in communication for so long that it will not hear of it."""

    def holds(self, observer: Observer) -> bool:
        """Whether an interrupt has come that the main thread may not have got yet."""
        since_s, mark = self._termination.interrupted_s(), observer.mark
        if since_s == 0:
            self._mark = mark
            return False
        if self._patience_s is None:  # a thread that moved just before may have got it, or been blocked since
            self._patience_s = BLOCKED_S if mark == self._mark else PERHAPS_BLOCKED_S
            self._mark = mark
        late = since_s > self._patience_s
        if mark != self._mark or (late and (observer.waited_s() == 0 or _is_handling_interrupt())):
            self._termination.forget_interrupt()
            self._mark, self._patience_s = mark, None
            return False
        self.overdue = late
        return True


def _is_handling_interrupt() -> bool:
    """Whether the main thread is in an ``except`` or ``finally`` block because of a KeyboardInterrupt."""
    found = sys._current_exceptions().get(threading.main_thread().ident or 0)
    current: object = found[1] if isinstance(found, tuple) else found
    for _ in range(20):
        if not isinstance(current, BaseException) or isinstance(current, KeyboardInterrupt):
            break
        current = current.__context__
    return isinstance(current, KeyboardInterrupt)
