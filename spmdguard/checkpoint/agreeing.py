"""What ranks tell each other while saving: one number at a time, texts only where somebody failed.

``alone`` (no process group) every exchange is with oneself.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from spmdguard.deferred import defer, store
from spmdguard.format import find_user_frame, format_exception_line
from spmdguard.group.world import Channel, world
from spmdguard.latch import is_communication_failure
from spmdguard.meeting import meet
from spmdguard.region import opened

SAVE = "save_checkpoint"


@dataclass(frozen=True)
class Partners:
    """The ranks that save together; the first of the group is the main one."""

    channel: Channel | None

    @property
    def rank(self) -> int:
        """This rank."""
        return world().rank() if self.channel is None else self.channel.rank

    @property
    def is_main(self) -> bool:
        """Whether this rank prepares and publishes."""
        return self.channel is None or self.channel.rank == self.channel.ranks[0]

    def exchange(self, text: str) -> dict[int, str]:
        """The texts of all ranks, main first."""
        channel = self.channel
        if channel is None:
            return {self.rank: text}
        texts = meet(SAVE, channel, lambda: channel.gather_texts(text))
        return dict(zip(channel.ranks, texts, strict=True))

    def exchange_data(self, data: dict[str, Any]) -> dict[int, dict[str, Any]]:
        """The same for what JSON can hold."""
        return {rank: json.loads(text) for rank, text in self.exchange(json.dumps(data)).items()}

    def maximum(self, number: int) -> int:
        """The largest number of any rank."""
        channel = self.channel
        return number if channel is None else meet(SAVE, channel, lambda: channel.max_int32(number))

    def share_failures(self, failure: str) -> dict[int, str]:
        """Failures by rank, the same on every rank; one all_reduce where there is none."""
        if not self.maximum(int(bool(failure))):
            return {}
        return {rank: text for rank, text in self.exchange(failure).items() if text}


def attempt(label: str, work: Callable[[], Any]) -> str:
    """Run rank-local work: ``""``, or in words the error that was deferred.

    Raises:
        BaseException: what is never deferred: interrupts, exits, failures of a ``@collective``.
    """
    try:
        with opened(label):
            work()
        return ""
    except Exception as exc:
        caught = exc
    try:
        if is_communication_failure(caught, sys.exc_info()[1]):
            raise caught
        text = format_exception_line(caught)
        defer(caught, label, find_user_frame())
        return text
    finally:
        del caught


def count_deferred() -> tuple[int, int]:
    """Changes whenever this process defers an error."""
    kept = store()
    return id(kept.first), kept.num_later
