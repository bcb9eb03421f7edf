"""SIGTERM and Ctrl-C while the main thread is blocked in a collective: the watch learns of them.

A launcher ends all ranks as soon as one of them has died. Python runs no handler while its main thread is
blocked in C, but writes to the wakeup descriptor at once. Where the program has a handler of its own, or
asyncio the descriptor, nothing is changed. A forked child has the default action again. The handler of SIGINT stays
Python's: only that it came is noticed.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import threading
import time
from collections.abc import Callable
from types import FrameType


class Termination:
    """Catches SIGTERM for the watch; made on the main thread."""

    def __init__(self) -> None:
        self.reading, self._writing = os.pipe()
        for descriptor in (self.reading, self._writing):
            os.set_blocking(descriptor, False)
        self._asked_s: float | None = None
        self._interrupted_s: float | None = None
        self.has_news: Callable[[], bool] = bool
        self._installed = False
        if threading.current_thread() is threading.main_thread() and (
            signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
        ):
            before = signal.set_wakeup_fd(self._writing, warn_on_full_buffer=False)
            if before != -1:
                signal.set_wakeup_fd(before)
                return
            signal.signal(signal.SIGTERM, self._handle)
            self._installed = True
            _catching.append(self)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        """On the main thread, when it gets to run: end as without a handler, unless the watch is about to."""
        self._asked_s = self._asked_s or time.monotonic()
        if not self.has_news():
            die()

    def asked_s(self) -> float:
        """How long ago SIGTERM came; 0 where it has not."""
        return 0.0 if self._asked_s is None else time.monotonic() - self._asked_s

    def was_asked(self) -> bool:
        """Whether SIGTERM has come and this process has no handler of its own for it."""
        self._read()
        return self._asked_s is not None and self._installed and self.is_handling()

    def interrupted_s(self) -> float:
        """How long ago a SIGINT came that is Python's to handle, and was not forgotten since; 0 where none has."""
        self._read()
        return 0.0 if self._interrupted_s is None else time.monotonic() - self._interrupted_s

    def forget_interrupt(self) -> None:
        """The main thread has got it, or does not wait for another rank."""
        self._interrupted_s = None

    def _read(self) -> None:
        """Note which signals have come."""
        with contextlib.suppress(OSError):
            numbers = os.read(self.reading, 4096)
            if signal.SIGTERM in numbers:
                self._asked_s = self._asked_s or time.monotonic()
            if signal.SIGINT in numbers and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
                self._interrupted_s = self._interrupted_s or time.monotonic()

    def close(self, *, failing: bool = False) -> None:
        """Put everything back, on the main thread; ``failing``: this process ends by itself with its own code."""
        if self._installed and threading.current_thread() is threading.main_thread():
            if self.is_handling():
                signal.signal(signal.SIGTERM, signal.SIG_IGN if failing else signal.SIG_DFL)
            found = signal.set_wakeup_fd(-1)
            if found != self._writing:
                signal.set_wakeup_fd(found)  # somebody else's by now
            self._installed = False
            _catching.remove(self)

    def is_handling(self) -> bool:
        """Whether SIGTERM still comes here, and not to a handler that the program has installed since."""
        return signal.getsignal(signal.SIGTERM) == self._handle

    def leave_to_default(self) -> None:
        """In a forked child, which has no watch: SIGTERM ends it, and its parent does not hear of it."""
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.set_wakeup_fd(-1)
        self._installed = False


_catching: list[Termination] = []
_forking = threading.local()


def _before_fork() -> None:
    """Let SIGTERM wait: Python forgets signals that reach a child before it knows that it is one."""
    _forking.mask = None
    if _catching and _catching[-1].is_handling():
        _forking.mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})


def _after_fork_in_parent() -> None:
    if _forking.mask is not None:
        signal.pthread_sigmask(signal.SIG_SETMASK, _forking.mask)


def _after_fork_in_child() -> None:
    if _forking.mask is not None:
        _catching.pop().leave_to_default()
    _catching.clear()
    _after_fork_in_parent()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child
    )


def die() -> None:
    """End by SIGTERM as a process without a handler does; works on any thread."""
    ctypes.CDLL(None).signal(int(signal.SIGTERM), None)
    os.kill(os.getpid(), signal.SIGTERM)
