"""Keep the threads of simulated ranks on one processor: only one of them runs at a time.

Otherwise each hand-over of the baton wakes a thread on another processor, whose caches know nothing of it, and a
simulation takes nearly twice as long. Linux only; elsewhere nothing is done.
"""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

from spmdguard.testing.ranks import thread

_PROCESSOR = 36  # in /proc/PID/stat, counted from the field behind the name of the program


class Processor:
    """The one that the ranks of a run share, and those that their helpers and children get back."""

    def __init__(self) -> None:
        self._all: set[int] = set()
        self._one: set[int] = set()
        if sys.platform == "linux":
            with contextlib.suppress(OSError):  # a sandbox that forbids asking only makes the run slower
                self._all = os.sched_getaffinity(0)
                self._one = {_current_processor()} & self._all

    def pin(self) -> None:
        """Keep the calling thread on the shared processor."""
        self._move(self._one)

    def unpin(self) -> None:
        """Let the calling thread, which a pinned one has started, run on all again."""
        self._move(self._all)

    def _move(self, processors: set[int]) -> None:
        if self._one and sys.platform == "linux":
            with contextlib.suppress(OSError):  # as above
                os.sched_setaffinity(0, processors)


def _current_processor() -> int:
    """The processor that the calling thread runs on."""
    stat = Path("/proc/thread-self/stat").read_text(encoding="utf-8", errors="replace")
    return int(stat.rpartition(")")[2].split()[_PROCESSOR])


def _unpin_child() -> None:
    """A process forked by a rank computes beside the others."""
    me = thread.rank
    if me is not None:
        me.processor.unpin()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_unpin_child)
