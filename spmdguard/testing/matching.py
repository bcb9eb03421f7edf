"""Which call of one rank meets which call of another, and what is wrong where they do not match.

Terms: a *call* is one rank's part of a collective or transfer; a *meeting* is what the calls of the ranks
with the same number on the same group make together; it is *done* when its last call has come and its
results are written. Matching is by number, so the first call that differs is found when it comes.
Cost: O(1) for a call, O(group size) for a meeting.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from spmdguard.testing.mismatch import CollectiveMismatch
from spmdguard.testing.ranks import SimulatedRank
from spmdguard.testing.sites import Site

Combine = Callable[[list[Any]], str | None]


class Call:
    """One rank's part: what every rank must agree on (``signature``, named by ``names``), and its data."""

    __slots__ = ("names", "operation", "payload", "rank", "signature", "site")

    def __init__(
        self,
        operation: str,
        rank: SimulatedRank,
        site: Site,
        names: tuple[str, ...] = (),
        signature: tuple[Any, ...] = (),
        payload: Any = None,
    ) -> None:
        self.operation = operation
        self.rank = rank
        self.site = site
        self.names = names
        self.signature = signature
        self.payload = payload

    def name(self) -> str:
        """The operation, with the function that the user called where that is another one."""
        entry = self.site.entry
        return self.operation if entry in ("", self.operation) else f"{self.operation} of {entry}"

    def __str__(self) -> str:
        shown = [f"{name}={_show(value)}" for name, value in zip(self.names, self.signature, strict=True)]
        arguments = f"({', '.join(shown)})" if shown else ""
        return f"{self.name()}{arguments} at {self.site}"

    def differs_in(self, other: Call) -> str:
        """The names of what two calls of one operation do not agree on."""
        pairs = zip(self.names, self.signature, other.signature, strict=True)
        return " and ".join(name for name, mine, theirs in pairs if mine != theirs)


def _show(value: Any) -> str:
    """``[4]`` for a shape, ``float32`` for ``torch.float32``."""
    if isinstance(value, tuple):
        return str(list(value))
    return str(value).removeprefix("torch.")


class Meeting:
    """The calls with one number on one group, or the two ends of a transfer."""

    __slots__ = ("calls", "done", "failure", "first", "group", "num_come", "waiters")

    def __init__(self, group: Group, size: int) -> None:
        self.group = group
        self.calls: list[Call | None] = [None] * size
        self.num_come = 0
        self.first: Call | None = None
        self.done = False
        self.failure: CollectiveMismatch | None = None
        self.waiters: list[SimulatedRank] = []

    def begun(self) -> list[Call]:
        """The calls that have come."""
        return [call for call in self.calls if call is not None]

    def missing(self) -> list[int]:
        """The ranks that have not come; for a transfer, the other end."""
        return [rank for rank, call in zip(self.group.ranks, self.calls, strict=True) if call is None]


class Transfer(Meeting):
    """One send and the receive that takes it."""

    __slots__ = ("peer", "sender")

    def __init__(self, group: Group, peer: int | None) -> None:
        super().__init__(group, 1)
        self.peer = peer
        self.sender: SimulatedRank | None = None

    def missing(self) -> list[int]:
        return [self.group.ranks[self.peer]] if self.peer is not None else []


class Route(NamedTuple):
    """Where an open transfer goes, in group ranks; a receive from any rank has no source."""

    source: int | None
    target: int
    tag: int
    transfer: Transfer

    def fits(self, other: Route) -> bool:
        """Whether a send and a receive belong together."""
        same_source = self.source == other.source or None in (self.source, other.source)
        return same_source and self.target == other.target and self.tag == other.tag


class Group:
    """The ranks of one process group and their open meetings; one object for all of them."""

    def __init__(self, ranks: Sequence[int], name: str) -> None:
        self.ranks = tuple(ranks)
        self.name = name
        self.size = len(self.ranks)
        self.index = {rank: index for index, rank in enumerate(self.ranks)}
        self.num_calls = [0] * self.size
        self.meetings: dict[int, Meeting] = {}
        self.sends: list[Route] = []
        self.receives: list[Route] = []
        self.failure: CollectiveMismatch | None = None
        self.left: set[int] = set()

    def describe(self) -> str:
        """The group for a message."""
        return self.name

    def open_meetings(self) -> list[Meeting]:
        """Meetings and transfers that are not done."""
        transfers = [route.transfer for route in (*self.sends, *self.receives)]
        return [*self.meetings.values(), *transfers]

    def come(self, call: Call, combine: Combine) -> tuple[Meeting, str | None]:
        """Add ``call`` to its meeting; the text says what is wrong, if anything."""
        index = self.index[call.rank.number]
        number = self.num_calls[index]
        self.num_calls[index] = number + 1
        meeting = self.meetings.get(number)
        if meeting is None:
            meeting = self.meetings[number] = Meeting(self, self.size)
        meeting.calls[index] = call
        meeting.num_come += 1
        first = meeting.first
        if first is None:
            meeting.first = call
        elif first.operation != call.operation or first.signature != call.signature:
            return meeting, _tell_apart(first, call)
        if meeting.num_come == self.size:
            del self.meetings[number]
            calls = meeting.begun()
            wrong = combine([each.payload for each in calls])
            for each in calls:
                each.payload = None
            if wrong is not None:
                return meeting, f"{call.operation}: {wrong}"
            meeting.done = True
        return meeting, None


def _tell_apart(first: Call, call: Call) -> str:
    if first.operation != call.operation:
        return "ranks began different collectives"
    return f"ranks disagree on {call.differs_in(first)} of {call.name()}"
