"""The ranks as the rest of this package sees them: ``World`` and ``Channel`` over the meetings of a run."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

from spmdguard.group.torch_access import default_group, loaded_c10d
from spmdguard.group.world import Channel
from spmdguard.testing.matching import Call, Group, Meeting
from spmdguard.testing.meetings import Meetings
from spmdguard.testing.mismatch import CollectiveMismatch
from spmdguard.testing.ranks import SimulatedRank
from spmdguard.testing.sites import find_site


class _Pending:
    """A begun agreement."""

    def __init__(self, channel: GroupChannel, meeting: Meeting, answer: list[Any]) -> None:
        self._channel = channel
        self._meeting = meeting
        self._answer = answer

    def wait(self) -> int:
        self._channel.finish(self._meeting)
        value: int = self._answer[0]
        return value


class GroupChannel:
    """``Channel`` of one simulated rank to the others of its group; shares the group's sequence of calls."""

    def __init__(self, meetings: Meetings, me: SimulatedRank, group: Group) -> None:
        self.rank = me.number
        self.ranks: Sequence[int] = group.ranks
        self._meetings = meetings
        self._me = me
        self._group = group
        self._failure: CollectiveMismatch | None = None

    def _begin(self, kind: str, value: Any, combine: Callable[[list[Any]], Any]) -> tuple[Meeting, list[Any]]:
        """Come with ``value``; once the meeting is done, the list holds what ``combine`` made of them."""
        answer: list[Any] = []
        site = find_site()

        def answer_all(payloads: list[Any]) -> None:
            agreed = combine([given for given, _ in payloads])
            for _, answers in payloads:
                answers.append(agreed)

        call = Call(site.entry or kind, self._me, site, payload=(value, answer))
        if call.operation != kind:
            call.names, call.signature = ("exchange",), (kind,)
        try:
            return self._meetings.begin(self._group, call, answer_all), answer
        except CollectiveMismatch as failure:
            self._failure = failure
            raise

    def finish(self, meeting: Meeting) -> None:
        """Wait, and remember how it failed."""
        try:
            self._meetings.finish(self._me, meeting)
        except CollectiveMismatch as failure:
            self._failure = failure
            raise

    def _meet(self, kind: str, value: Any, combine: Callable[[list[Any]], Any]) -> Any:
        meeting, answer = self._begin(kind, value, combine)
        self.finish(meeting)
        return answer[0]

    def max_int32(self, value: int) -> int:
        agreed: int = self._meet("max", value, max)
        return agreed

    def start_max_int32(self, value: int) -> _Pending:
        return _Pending(self, *self._begin("max", value, max))

    def gather_texts(self, text: str) -> list[str]:
        return list(self._meet("texts", text, list))

    def barrier(self) -> None:
        self._meet("barrier", None, len)

    def describe(self) -> str:
        return self._group.describe()

    def find_arrived(self, operation: str) -> Sequence[int] | None:
        """The ranks that failed in the same meeting."""
        if self._failure is None:
            return None
        return sorted({*self._failure.calls, self.rank} - set(self._failure.missing))


class RankWorld:
    """``World`` of one simulated rank: torch.distributed's groups where it is simulated too."""

    def __init__(self, meetings: Meetings, me: SimulatedRank, alone: Group | None) -> None:
        self.meetings = meetings
        self._me = me
        self._without_torch = alone
        self._channels: dict[Group, GroupChannel] = {}

    def _default(self) -> Group | None:
        """The default group of this rank; None before it is made and after it is destroyed."""
        if self._without_torch is not None:
            return None if self._me.number in self._without_torch.left else self._without_torch
        group = default_group()
        return None if group is None else group.simulated

    def rank(self) -> int:
        return self._me.number

    def local_rank(self) -> int:
        return self._me.number

    def world_size(self) -> int:
        group = self._default()
        return 1 if group is None else group.size

    def group_id(self) -> Any:
        group = self._default()
        return None if group is None else (id(group), self._me.num_groups)

    def sequence_number(self) -> int | None:
        group = self._default()
        return None if group is None else group.num_calls[group.index[self._me.number]]

    def channel(self, group: Any = None) -> Channel | None:
        if isinstance(group, int):
            raise ValueError(f"this rank (rank {self.rank()}) is no member of the group given, got {group!r}")
        found = self._default() if group is None else group.simulated
        if found is None:
            return None
        channel = self._channels.get(found)
        if channel is None:
            channel = self._channels[found] = GroupChannel(self.meetings, self._me, found)
        return channel

    def announce_failure(self, text: str) -> None:
        self.meetings.announced = self.meetings.announced or (self._me.number, text)

    def find_announced_failure(self) -> tuple[int, str] | None:
        announced = self.meetings.announced
        return None if announced is None or announced[0] == self._me.number else announced

    def forget_failure(self) -> None:
        self.meetings.announced = None

    def destroy(self, timeout_s: float, *, emergency: bool) -> None:
        if self._without_torch is not None:
            self._without_torch.left.add(self._me.number)
            return
        c10d = loaded_c10d()
        if c10d is not None and default_group() is not None:
            with contextlib.suppress(Exception) if emergency else contextlib.nullcontext():
                c10d.destroy_process_group()
