"""How a run ended, in the words that trackers know, and which rank's failure was the root cause."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from spmdguard.deferred import store
from spmdguard.errors import OtherRanksFailed
from spmdguard.format import format_exception_line, format_traceback
from spmdguard.group.world import world

Status = Literal["FINISHED", "FAILED", "KILLED"]
_CONSEQUENCE = re.compile(r"spmdguard: consequence of the failure of (rank \d+: .*)", re.DOTALL)


@dataclass(frozen=True)
class Outcome:
    """What a tracker is told when a run ends.

    SPMD:
        Rank-local: plain data.
        Called by: reporters, on the main rank.
        Result: rank-varying.
        Raises on: no rank.
    """

    status: Status
    cause: str = ""
    """``"rank 1: OSError: ..."``: the failure that came first, which may be another rank's; empty without."""
    traceback: str = ""
    exit_code: int = 0


def outcome_of(exc: BaseException | None) -> Outcome:
    """How a run ended that ``exc`` left, with an error that this rank still defers taken into account."""
    if exc is None or (isinstance(exc, SystemExit) and exc.code in (None, 0)):
        exc = store().first
        if exc is None:
            return Outcome("FINISHED")
    if isinstance(exc, KeyboardInterrupt):
        return Outcome("KILLED", f"rank {world().rank()}: KeyboardInterrupt", exit_code=130)
    return Outcome("FAILED", find_root_cause(exc), format_traceback(exc), exit_code=1)


def find_root_cause(exc: BaseException) -> str:
    """The failure behind ``exc``: of another rank, where this one merely lost its partner or was told."""
    if isinstance(exc, OtherRanksFailed):
        rank = min(exc.failures)
        return f"rank {rank}: {exc.failures[rank]}"
    for note in getattr(exc, "__notes__", ()):
        match = _CONSEQUENCE.match(note)
        if match is not None:
            return match[1]
    return f"rank {world().rank()}: {format_exception_line(exc)}"
