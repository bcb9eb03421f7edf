"""Threads that a simulated rank starts belong to it: they know who they are, but begin no collectives."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator

from spmdguard.current import simulated_process
from spmdguard.testing.ranks import SimulatedRank, thread


def _run_as_helper(me: SimulatedRank, run: Callable[[], None]) -> None:
    thread.rank, thread.is_helper = me, True
    me.processor.unpin()
    with simulated_process(me.values):
        run()


@contextlib.contextmanager
def helpers_belong_to_ranks() -> Iterator[None]:
    """Let threads started by ranks inside the block act as their rank."""
    before = threading.Thread.start

    @functools.wraps(before)
    def start(self: threading.Thread) -> None:
        me = thread.rank
        if me is not None:
            run = functools.partial(_run_as_helper, me, self.run)
            self.run = run  # type: ignore[method-assign]  # shadows the method on this thread object only
        before(self)

    threading.Thread.start = start  # type: ignore[method-assign]
    try:
        yield
    finally:
        threading.Thread.start = before  # type: ignore[method-assign]
