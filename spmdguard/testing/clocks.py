"""A clock for each simulated rank that moves only when it is told to: by a planned fault, or by waiting."""

from __future__ import annotations

from spmdguard.testing.meetings import Meetings
from spmdguard.testing.ranks import SimulatedRank, thread


class RankClock:
    """Starts at 0. Clocks of ranks are apart, as those of hosts are."""

    def __init__(self, meetings: Meetings, me: SimulatedRank) -> None:
        self._meetings = meetings
        self._me = me

    def monotonic(self) -> float:
        return self._me.now_s

    def sleep(self, seconds: float) -> None:
        """Move this rank's clock, and perhaps let other ranks run."""
        self._me.now_s += seconds
        if thread.rank is self._me and not thread.is_helper:
            self._meetings.scheduler.pause(self._me)
