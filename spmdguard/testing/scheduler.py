"""Hands the baton from rank to rank: exactly one simulated rank runs at a time.

A rank runs until it waits for others, pauses, or ends; who runs next is drawn from a generator seeded by the
user, so a seed is a schedule. A switch costs one lock released and one acquired (about 10 us).
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable

from spmdguard.testing.ranks import RankKilled, SimulatedRank

MAX_IDLE_POLLS = 1000


class Scheduler:
    """The baton of one run. ``on_stuck`` must make a rank ready, or all ranks have ended."""

    def __init__(self, ranks: list[SimulatedRank], seed: int, on_stuck: Callable[[], None]) -> None:
        self._ready = list(ranks)
        self._delayed: dict[SimulatedRank, int] = {}
        self._draw = random.Random(seed).random
        self._on_stuck = on_stuck
        self._all_ended = threading.Lock()
        self._all_ended.acquire()
        self.save: Callable[[SimulatedRank], None] | None = None
        self.restore: Callable[[SimulatedRank], None] | None = None

    def make_ready(self, ranks: list[SimulatedRank]) -> None:
        """``ranks`` may be drawn again."""
        for rank in ranks:
            rank.state = "ready"
        self._ready += ranks

    def run(self) -> None:
        """Let the ranks run until all have ended; called by the thread that simulates."""
        first = self._pick()
        if first is not None:
            first.lock.release()
            self._all_ended.acquire()

    def pause(self, me: SimulatedRank) -> None:
        """Perhaps let another rank run; ``me`` stays ready."""
        self._ready.append(me)
        self._switch(me)

    def delay(self, me: SimulatedRank, num_turns: int) -> None:
        """Keep ``me`` from running until ``num_turns`` others were drawn, or nobody else can run."""
        self._delayed[me] = num_turns
        self._switch(me)

    def wait(self, me: SimulatedRank) -> None:
        """Let others run until one of them makes ``me`` ready."""
        me.state = "waiting"
        self._switch(me)

    def end(self, me: SimulatedRank) -> None:
        """Hand the baton on for good."""
        following = self._pick()
        if following is None:
            self._all_ended.release()
        else:
            following.lock.release()

    def kill(self, me: SimulatedRank) -> None:
        """Stop ``me`` for good; its thread is unwound by ``unwind`` after all others have ended."""
        me.state = "killed"
        self.end(me)
        me.lock.acquire()
        raise RankKilled

    def _switch(self, me: SimulatedRank) -> None:
        if me.is_over:
            raise RankKilled
        following = self._pick()
        if following is me:
            return
        assert following is not None
        if self.save is not None:
            self.save(me)
        following.lock.release()
        me.lock.acquire()
        if me.is_over:
            raise RankKilled
        if self.restore is not None:
            self.restore(me)

    def _pick(self) -> SimulatedRank | None:
        ready = self._ready
        if self._delayed:
            self._count_down()
        if not ready:
            self._on_stuck()
            if not ready:
                return None
        index = int(self._draw() * len(ready))
        ready[index], ready[-1] = ready[-1], ready[index]
        return ready.pop()

    def _count_down(self) -> None:
        for rank in list(self._delayed):
            self._delayed[rank] -= 1
            if self._delayed[rank] < 0 or not self._ready:
                del self._delayed[rank]
                self._ready.append(rank)
