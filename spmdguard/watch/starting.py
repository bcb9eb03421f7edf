"""Start the watch of this process, and tell it how the process ends."""

from __future__ import annotations

import atexit
import os
import sys
from datetime import timedelta
from pathlib import Path
from types import TracebackType

from spmdguard.format import format_exception_line
from spmdguard.group.progress import switch_on_recorder
from spmdguard.primary import is_consequence, on_primary_error, on_written, was_written, write_primary_error
from spmdguard.stop.agreement import state as stop_state
from spmdguard.watch.cause import Cause
from spmdguard.watch.settings import Settings, make_settings
from spmdguard.watch.watching import Watch

__all__ = ["start_watch"]

_JOIN_S = 1.5
_running: Running | None = None


class Running:
    """The watch of this process, and what is known of its end."""

    def __init__(self, settings: Settings) -> None:
        switch_on_recorder(os.environ)
        self._pid = os.getpid()
        self._watch = Watch(settings, _find_step)
        self._cause: Cause | None = None
        self._lost_partner = False
        self._finished = False
        on_primary_error.append(self._tell)
        on_written.append(self._told)
        self._watch.start()

    def wait_until_joined(self) -> None:
        """A short time, for the other ranks to know of this one whatever it does next."""
        self._watch.ready.wait(_JOIN_S)

    def _tell(self, exc: BaseException) -> str | None:
        """This rank leaves with an error: the first cause, where it is another one."""
        if os.getpid() != self._pid:
            return None
        code = exc.code if isinstance(exc, SystemExit) and isinstance(exc.code, int) else 1
        self._lost_partner = is_consequence(exc)
        self._cause = self._watch.leave(
            "raised", exc=exc, victim=self._lost_partner, code=code, failure=format_exception_line(exc)[:400]
        )
        return None if self._cause is None else self._cause.title

    def _told(self) -> None:
        """The error stands on stderr; whatever this process still does, the other ranks need not wait for it."""
        if os.getpid() == self._pid:
            self._watch.has_said()

    def ended(self, exc: BaseException | None = None, *, code: int | None = None) -> None:
        """This rank ends without an error."""
        if os.getpid() == self._pid:
            how = "" if exc is None else format_exception_line(exc)[:400]
            self._watch.leave("ended", exc=exc, victim=False, code=code, failure=how)

    def finish(self, *, failing: bool = False) -> None:
        """Last: the other ranks may say why they leave, or end well where this one is ``failing``; the watch ends."""
        if os.getpid() == self._pid and not self._finished:
            self._finished = True
            self._watch.finish(self._cause, failing=failing)

    @property
    def is_victim(self) -> bool:
        """Whether this rank left because of another; one with an error of its own did not, whoever failed first."""
        return self._cause is not None and self._lost_partner


def start(settings: Settings) -> Running:
    """Start the watch of this process once; a second call returns the first one's."""
    global _running
    if _running is None or _running._pid != os.getpid():
        _running = Running(settings)
    return _running


def start_watch(
    *,
    stall_limit: float | timedelta | None = None,
    report_dir: str | Path | None = None,
    abort: bool = True,
) -> None:
    """Watch this run from now on: a report where it stalls, and one cause for all where a rank leaves.

    ``spmdguard run`` does the same without a change of the script. Call it before ``init_process_group``, so
    that torch records where collectives are begun.

    SPMD:
        Rank-local: a thread that talks to the job's own store and to the ranks of its node.
        Called by: every rank, once, early.
        Result: none.
        Raises on: no rank, but for bad arguments.

    Args:
        stall_limit: seconds that a rank may wait in communication; learned from the run without it.
        report_dir: folder for reports as text, JSON, HTML and a Perfetto trace.
        abort: whether all ranks of a stalled run end; else it is only reported.

    Raises:
        ValueError: ``stall_limit`` is no positive number of seconds.
    """
    running = start(make_settings(stall_limit, report_dir, abort))
    before = sys.excepthook

    def hook(kind: type[BaseException], exc: BaseException, traceback: TracebackType | None) -> None:
        if isinstance(exc, Exception) and not was_written(exc):
            write_primary_error(exc)
        else:
            before(kind, exc, traceback)

    def at_exit() -> None:
        running.ended()
        running.finish()

    sys.excepthook = hook
    atexit.register(at_exit)


def _find_step() -> int | None:
    """How often ``sync_should_stop`` was called."""
    known = stop_state().last
    return max(known.num_agreements, *known.calls.values(), 0) or None
