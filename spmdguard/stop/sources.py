"""What asks for a stop besides errors: signals of a scheduler, and a limit of wall-clock time.

A source only remembers that it asks; the ranks find out together, in the next ``sync_should_stop``. It asks
until it is closed, so that a caller who leaves the inner loop only is told to leave the outer one too.
"""

from __future__ import annotations

import contextlib
import math
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import timedelta
from types import FrameType, TracebackType
from typing import Any

from spmdguard.clock import clock
from spmdguard.current import PerProcess, simulated_values


class Sources:
    """The sources of one process; ``any_open`` is read in every agreement, ``wants`` called where it is true."""

    def __init__(self) -> None:
        self.open: list[StopSource] = []
        self.any_open = False
        self.asks = False
        self.deadline_s = math.inf

    def refresh(self) -> None:
        """Sum up the open sources; plain assignments, because a signal may come at any instant."""
        self.any_open = bool(self.open)
        self.asks = any(source.text for source in self.open)
        self.deadline_s = min((source.deadline_s for source in self.open), default=math.inf)

    def wants(self) -> bool:
        """Whether a source asks now."""
        return self.asks or (self.deadline_s != math.inf and clock().monotonic() >= self.deadline_s)

    def texts(self) -> list[str]:
        """Why, a text for each source that asks."""
        now_s = clock().monotonic()
        return [text for source in self.open for text in [source.describe(now_s)] if text]

    def receive(self, number: int) -> bool:
        """A signal has come; whether a source was waiting for it."""
        waiting = [source for source in self.open if number in source.signals]
        for source in waiting:
            source.text = source.text or f"received {signal.Signals(number).name}"
        self.refresh()
        return bool(waiting)


sources: PerProcess[Sources] = PerProcess(Sources)


class StopSource(AbstractContextManager["StopSource"]):
    """An open source of stops; ``close`` it, or use it in a ``with`` statement.

    SPMD:
        Rank-local: no communication.
        Called by: made by ``stop_on_signal`` and ``stop_after``.
        Result: rank-varying.
        Raises on: no rank.
    """

    def __init__(self, signals: tuple[int, ...] = (), limit_s: float = math.inf) -> None:
        self.signals = signals
        self.text = ""
        self.limit_s = limit_s
        self.deadline_s = math.inf if limit_s == math.inf else clock().monotonic() + limit_s
        self._close: list[Callable[[], Any]] = []
        self._sources = sources()
        self._sources.open.append(self)
        self._sources.refresh()

    @property
    def asks(self) -> bool:
        """Whether this source asks to stop now, on this rank."""
        return bool(self.describe(clock().monotonic()))

    def describe(self, now_s: float) -> str:
        """Why it asks; empty where it does not."""
        if self.text or now_s < self.deadline_s:
            return self.text
        return f"the time limit of {self.limit_s:g} s has passed"

    def on_close(self, call: Callable[[], Any]) -> None:
        """Have ``call`` made when the source is closed."""
        self._close.append(call)

    def close(self) -> None:
        """Ask no longer; signals get their earlier handlers back. Does nothing the second time."""
        while self._close:
            self._close.pop()()
        with contextlib.suppress(ValueError):
            self._sources.open.remove(self)
        self._sources.refresh()

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def _default_signals() -> Iterator[signal.Signals]:
    for name in ("SIGTERM", "SIGUSR1"):
        if hasattr(signal, name):
            yield signal.Signals[name]


def stop_on_signal(*signals: int) -> StopSource:
    """Ask for a stop when a signal comes: every rank leaves after the same step, with time to save.

    A scheduler sends ``SIGTERM`` before it kills, ``torchrun`` hands it on to its ranks, and Slurm sends what
    ``--signal=USR1@120`` says. The signal may reach one rank, all of them, or all at different instants: the
    next ``sync_should_stop`` is true on every rank. It is noticed when the running call returns to Python, so
    a rank that waits in a collective notices it after that one. A handler of the program's own that was there
    before is called too. Further signals change nothing, but for a second ``SIGINT``, which interrupts.

    SPMD:
        Rank-local: no communication.
        Called by: every rank, on the main thread, before training.
        Result: rank-varying; branch on ``sync_should_stop()``, never on this.
        Raises on: the ranks that call it wrongly.

    Args:
        signals: which ones; ``SIGTERM`` and ``SIGUSR1`` without.

    Returns:
        The open source; closing it puts the earlier handlers back.

    Raises:
        ValueError: not a signal that can be handled, or not called on the main thread.
    """
    wanted = tuple(dict.fromkeys(signals or _default_signals()))
    known = {int(each) for each in signal.Signals} - {
        int(each) for each in (getattr(signal, name, -1) for name in ("SIGKILL", "SIGSTOP"))
    }
    for number in wanted:
        if number not in known:
            raise ValueError(f"signals must be signals that can be handled, got {number!r}")
    if simulated_values() is not None:
        return StopSource(wanted)  # SimulatedWorld.signal tells it; a real one would reach all ranks
    if threading.current_thread() is not threading.main_thread():
        raise ValueError(
            "stop_on_signal must be called on the main thread: Python handles signals only there"
        )
    source = StopSource(wanted)
    for number in wanted:
        _handle(number, source)
    return source


def _handle(number: int, source: StopSource) -> None:
    before = signal.getsignal(number)
    state = sources()

    def handler(received: int, frame: FrameType | None) -> None:
        # no log here: the stream may be locked by the code that was interrupted
        again = bool(source.text)
        state.receive(received)
        if callable(before) and (again or before is not signal.default_int_handler):
            before(received, frame)

    def restore() -> None:
        if signal.getsignal(number) is handler:
            signal.signal(number, signal.SIG_DFL if before is None else before)

    signal.signal(number, handler)
    source.on_close(restore)


def stop_after(limit: float | timedelta) -> StopSource:
    """Ask for a stop when a wall-clock limit has passed, counted from this call.

    Ranks start at different instants and their clocks differ; as soon as the limit has passed on one rank,
    the next ``sync_should_stop`` is true on every rank. Leave time below the scheduler's limit for the last
    step and the last checkpoint.

    SPMD:
        Rank-local: no communication.
        Called by: every rank, before training.
        Result: rank-varying; branch on ``sync_should_stop()``, never on the clock.
        Raises on: the ranks that call it wrongly.

    Args:
        limit: seconds.

    Returns:
        The open source; closing it lifts the limit.

    Raises:
        ValueError: ``limit`` is not a positive number of seconds.
    """
    limit_s = limit.total_seconds() if isinstance(limit, timedelta) else float(limit)
    if not 0 < limit_s < math.inf:
        raise ValueError(f"limit must be a positive number of seconds, got {limit!r}")
    return StopSource(limit_s=limit_s)
