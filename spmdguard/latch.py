"""Communication is broken: after a collective failed on this rank, later guarded ones refuse.

A rank that left a collective half-way has lost its place in the common sequence; its next collective
would meet the wrong partner or wait for ever. The first failure closes the latch; only
``resume_communication`` opens it, after the process group has been rebuilt.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

from spmdguard.current import PerProcess
from spmdguard.errors import CommunicationBroken
from spmdguard.format import add_note, format_exception_line
from spmdguard.group.world import world

__all__ = ["resume_communication"]

_MARK = "__spmdguard_communication_failure__"


@dataclass(frozen=True)
class Failure:
    """The first failed collective of this rank: its name, its number on this rank, and the error as text."""

    name: str
    number: int
    sequence: int | None
    rank: int
    text: str
    group_id: Any


class Latch:
    """Closed by the first failure; counts the guarded collectives begun."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.failure: Failure | None = None
        self.num_begun = 0

    def close(self, exc: BaseException, name: str) -> None:
        """Record that ``exc`` came out of collective ``name``, and mark and annotate ``exc``."""
        if is_communication_failure(exc):
            return
        here = world()
        rank, sequence = here.rank(), here.sequence_number()
        failure = Failure(name, self.num_begun, sequence, rank, format_exception_line(exc), here.group_id())
        with self._lock:
            if self.failure is None:
                self.failure = failure
        mark(exc)
        position = f"number {failure.number} on this rank"
        if sequence is not None:
            position += f", process group sequence number {sequence}"
        add_note(exc, f"spmdguard: raised by rank {rank} in collective {name!r} ({position})")

    def refuse(self, operation: str) -> CommunicationBroken:
        """The error for ``operation``, begun although the latch is closed."""
        failure = self.failure
        assert failure is not None
        return CommunicationBroken(
            operation=operation,
            rank=failure.rank,
            failed=failure.name,
            number=failure.number,
            failure=failure.text,
        )


latch: PerProcess[Latch] = PerProcess(Latch)


def mark(exc: BaseException) -> None:
    """Remember on the exception object itself that it came out of a collective."""
    try:
        setattr(exc, _MARK, True)
    except Exception:
        return


def is_communication_failure(exc: BaseException, outer: BaseException | None = None) -> bool:
    """Whether ``exc``, or what it was raised from or while handling, came out of a collective.

    ``outer`` is an exception that was already being handled before; it and what lies behind it do not count.
    """
    seen: set[int] = set()
    pending: list[BaseException | None] = [exc]
    while pending:
        current = pending.pop()
        if current is None or current is outer or id(current) in seen:
            continue
        seen.add(id(current))
        if isinstance(current, CommunicationBroken) or getattr(current, _MARK, False) is True:
            return True
        pending += [current.__cause__, current.__context__]
    return False


def resume_communication() -> None:
    """Allow guarded collectives again after the process group has been rebuilt; the only way to do so.

    SPMD:
        Rank-local: no communication.
        Called by: every rank, after ``destroy_process_group`` and a new ``init_process_group``.
        Result: none; does nothing where communication is not broken.
        Raises on: the ranks that still use the process group in which the failure happened.

    Raises:
        CommunicationBroken: the default process group is still the one of the failure.
    """
    state = latch()
    failure = state.failure
    if failure is None:
        return
    if failure.group_id is not None and failure.group_id == world().group_id():
        raise state.refuse("resume_communication")
    state.failure = None
    world().forget_failure()
