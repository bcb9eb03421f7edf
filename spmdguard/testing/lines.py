"""Faults at lines of code: a trace function on the rank's own thread, installed only where one is planned.

Cost: nothing without such a fault. An error raised by a trace function switches tracing off for its thread;
it is switched on again at the rank's next operation. A debugger or a coverage tool that traces does not see
the rank's thread meanwhile.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import TYPE_CHECKING, Any

from spmdguard.testing.ranks import SimulatedRank

if TYPE_CHECKING:
    from spmdguard.testing.faults import Fault
    from spmdguard.testing.meetings import Meetings


def watch_lines(meetings: Meetings, me: SimulatedRank) -> None:
    """Let faults planned for lines happen on the calling thread, which is that of ``me``."""
    planned = meetings.faults_at_lines(me.number)
    if not planned or sys.gettrace() is not None:
        return
    by_line: dict[int, list[Fault]] = {}
    for fault in planned:
        assert fault.line is not None
        by_line.setdefault(fault.line[1], []).append(fault)

    def in_function(frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line":
            for fault in by_line.get(frame.f_lineno, ()):
                _count(meetings, me, fault, frame)
        return in_function

    def begun(frame: FrameType, event: str, argument: Any) -> Any:
        names = (fault.line[0] for fault in planned if fault.line is not None)
        return in_function if any(_is_file(frame.f_code.co_filename, name) for name in names) else None

    sys.settrace(begun)
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:  # functions that run already, after tracing was switched off
        frame.f_trace = begun(frame, "call", None)
        frame = frame.f_back


def _count(meetings: Meetings, me: SimulatedRank, fault: Fault, frame: FrameType) -> None:
    assert fault.line is not None
    if not _is_file(frame.f_code.co_filename, fault.line[0]):
        return
    count = me.line_counts[id(fault)] = me.line_counts.get(id(fault), 0) + 1
    if count == fault.nth:
        meetings.happen(me, fault, f"{fault.at} in {frame.f_code.co_name}")


def _is_file(filename: str, name: str) -> bool:
    path = filename.replace("\\", "/")
    return path == name or path.endswith(f"/{name}")
