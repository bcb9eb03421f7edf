"""The ranks of one run meeting each other: begin, wait, fail together, and be told apart when they cannot.

The one object that all simulated ranks of a run share. Everything in it is touched only by the rank that
holds the baton.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from spmdguard.format import name_ranks
from spmdguard.stop.sources import sources
from spmdguard.testing.faults import Fault, FaultPlan, describe_missed
from spmdguard.testing.lines import watch_lines
from spmdguard.testing.matching import Call, Combine, Group, Meeting, Route, Transfer
from spmdguard.testing.mismatch import CollectiveMismatch, Kind
from spmdguard.testing.processor import Processor
from spmdguard.testing.ranks import RankKilled, SimulatedRank, refuse_other_threads, thread
from spmdguard.testing.scheduler import MAX_IDLE_POLLS, Scheduler
from spmdguard.testing.sites import Site

DEFAULT_GROUP = "default group"
Match = Callable[[Any, Any], str | None]


class Meetings:
    """Groups, open meetings and the first mismatch of one run."""

    def __init__(self, num_ranks: int, seed: int, faults: FaultPlan) -> None:
        processor = Processor()
        self.ranks = [SimulatedRank(number, processor) for number in range(num_ranks)]
        self.scheduler = Scheduler(self.ranks, seed, self._end_stuck)
        self.ended: list[SimulatedRank] = []
        self.groups: dict[Any, Group] = {}
        self.mismatch: CollectiveMismatch | None = None
        self.failed_before: list[SimulatedRank] = []
        self.announced: tuple[int, str] | None = None
        self._faults = faults
        self.faults_at_lines = faults.at_lines
        self._struck: set[int] = set()

    def find_group(self, key: Any, ranks: Sequence[int], name: str) -> Group:
        """The group known by ``key``, the same object for each of its ranks."""
        group = self.groups.get(key)
        if group is None:
            group = self.groups[key] = Group(ranks, name)
        return group

    def strike(self, me: SimulatedRank, site: Site, *names: str) -> None:
        """Let a planned fault happen at the operation ``names`` that ``me`` is about to begin."""
        refuse_other_threads(me, names[0])
        if me.is_over:
            raise RankKilled
        if self._faults.planned:
            for fault in self._faults.find(me.number, names, me.counts):
                self.happen(me, fault, f"{names[0]} at {site}")
            watch_lines(self, me)  # an error raised at a line has switched that off

    def happen(self, me: SimulatedRank, fault: Fault, place: str) -> None:
        """Let ``fault`` happen to ``me``, which is about to begin what ``place`` says."""
        self._struck.add(id(fault))
        if fault.action == "delay":
            self.scheduler.delay(me, fault.num_turns)
        elif fault.action == "advance":
            me.now_s += fault.seconds
        elif fault.action == "kill" or (fault.action == "signal" and not sources().receive(fault.signal)):
            me.ending = f"was killed at {place}"
            self.scheduler.kill(me)
        elif fault.action == "fail":
            assert fault.error is not None
            raise fault.error

    def missed_faults(self) -> list[str]:
        """What to say of planned faults that have not struck; none where a rank has failed or was killed before."""
        if any(rank.error is not None or rank.ending.startswith("was killed") for rank in self.ranks):
            return []
        missed = self._faults.not_among(self._struck)
        return [describe_missed(fault, self.ranks[fault.rank].counts) for fault in missed]

    def begin(self, group: Group, call: Call, combine: Combine) -> Meeting:
        """Come to the next meeting of ``group`` without waiting for the others."""
        me = call.rank
        if self._faults.planned or me.is_over or thread.rank is not me or thread.is_helper:
            self.strike(me, call.site, call.operation, call.site.entry)
        if group.failure is not None:
            raise group.failure.again()
        me.last = call
        me.num_polls = 0
        meeting, wrong = group.come(call, combine)
        if wrong is not None:
            raise self._fail_group(group, meeting, "different calls", wrong)
        if meeting.done:
            self._release(meeting)
        return meeting

    def finish(self, me: SimulatedRank, meeting: Meeting) -> None:
        """Wait until every rank has come."""
        if meeting.done:
            self.scheduler.pause(me)
        elif meeting.failure is None:
            me.waits_for = meeting
            meeting.waiters.append(me)
            self.scheduler.wait(me)
            me.waits_for = None
        if meeting.failure is not None:
            raise meeting.failure.again()

    def meet(self, group: Group, call: Call, combine: Combine) -> None:
        """Begin and finish."""
        self.finish(call.rank, self.begin(group, call, combine))

    def poll(self, me: SimulatedRank) -> None:
        """Let others run while ``me`` looks again and again whether something is done."""
        me.num_polls += 1
        self.scheduler.pause(me)
        if me.num_polls > MAX_IDLE_POLLS:
            me.num_polls = 0
            self._end_stuck(polling=me)

    def begin_transfer(
        self, group: Group, call: Call, *, peer: int | None, tag: int, match: Match
    ) -> Transfer:
        """Begin one end of a transfer to or from group rank ``peer``; None receives from any."""
        me = call.rank
        self.strike(me, call.site, call.operation, call.site.entry)
        self._refuse_broken(group)
        me.last = call
        me.num_polls = 0
        own = group.index[me.number]
        transfer = Transfer(group, peer)
        transfer.calls[0] = call
        if call.operation == "send":
            assert peer is not None
            route, waiting, same = Route(own, peer, tag, transfer), group.receives, group.sends
        else:
            route, waiting, same = Route(peer, own, tag, transfer), group.sends, group.receives
        for other in waiting:
            if route.fits(other):
                waiting.remove(other)
                return self._finish_transfer(group, other.transfer, call, match)
        same.append(route)
        return transfer

    def _finish_transfer(self, group: Group, transfer: Transfer, call: Call, match: Match) -> Transfer:
        first = transfer.calls[0]
        assert first is not None
        send, receive = (call, first) if call.operation == "send" else (first, call)
        wrong = match(send.payload, receive.payload)
        if wrong is not None:
            transfer.calls.append(call)
            raise self._fail_group(group, transfer, "different calls", wrong)
        send.payload = receive.payload = None
        transfer.sender = send.rank
        transfer.done = True
        self._release(transfer)
        return transfer

    def _release(self, meeting: Meeting) -> None:
        self.scheduler.make_ready(meeting.waiters)
        meeting.waiters.clear()

    def _refuse_broken(self, group: Group) -> None:
        if group.failure is not None:
            raise group.failure.again()

    def _fail_group(self, group: Group, meeting: Meeting, kind: Kind, title: str) -> CollectiveMismatch:
        """Fail everything open on ``group``: later calls on it would meet the wrong partners."""
        failure = CollectiveMismatch(
            kind=kind,
            title=title,
            group=f"on the {group.describe()} ({name_ranks(group.ranks)})",
            calls={call.rank.number: str(call) for call in meeting.begun()},
            doing={rank.number: rank.doing() for rank in self.ranks},
            missing=meeting.missing(),
        )
        if self.mismatch is None:
            self.mismatch = failure
            self.failed_before = [rank for rank in self.ended if rank.error is not None]
        group.failure = failure
        for each in [meeting, *group.open_meetings()]:
            each.failure = failure
            self._release(each)
        group.meetings.clear()
        group.sends.clear()
        group.receives.clear()
        return failure

    def _end_stuck(self, polling: SimulatedRank | None = None) -> None:
        """No rank can run: fail the meetings that lack a rank that has gone, else all of them."""
        stuck = [rank.waits_for for rank in self.ranks if rank.state == "waiting" and rank.waits_for]
        stuck += [meeting for group in self.groups.values() for meeting in group.open_meetings() if polling]
        lacking = [meeting for meeting in stuck if self._gone(meeting)]
        for meeting in lacking or stuck:
            if meeting.failure is not None or meeting.done:
                continue
            gone = self._gone(meeting)
            name = meeting.begun()[0].name()
            if gone:
                title = f"{name_ranks(gone)} ended and will never come to {name}"
                self._fail_group(meeting.group, meeting, "rank ended", title)
            else:
                waiting = sorted(rank.number for rank in self.ranks if rank.state == "waiting")
                title = f"deadlock: {name_ranks(waiting or meeting.missing())} wait for each other"
                self._fail_group(meeting.group, meeting, "deadlock", title)

    def _gone(self, meeting: Meeting) -> list[int]:
        missing: Iterable[int] = meeting.missing()
        left = meeting.group.left
        return [rank for rank in missing if rank in left or self.ranks[rank].state in ("ended", "killed")]
