"""What the user may set of the watch."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path


@dataclass(frozen=True)
class Settings:
    """How to watch.

    Attributes:
        stall_limit_s: how long a rank may wait; None learns it.
        report_dir: where reports are written as text, JSON, HTML and a trace; None writes none.
        start_limit_s: how long a rank may at least wait before it has a process group.
        abort: whether a stalled run ends; else the report is all.
    """

    stall_limit_s: float | None = None
    report_dir: Path | None = None
    abort: bool = True
    start_limit_s: float = 300.0


def make_settings(
    stall_limit: float | timedelta | None,
    report_dir: str | Path | None,
    abort: bool,
    start_limit_s: float = 300.0,
) -> Settings:
    """Check the arguments.

    Raises:
        ValueError: ``stall_limit`` is no positive number of seconds.
    """
    seconds = stall_limit.total_seconds() if isinstance(stall_limit, timedelta) else stall_limit
    if seconds is not None and not (isinstance(seconds, int | float) and seconds > 0):
        raise ValueError(f"stall_limit must be a positive number of seconds, got {stall_limit!r}")
    return Settings(
        None if seconds is None else float(seconds),
        None if report_dir is None else Path(report_dir),
        abort,
        start_limit_s,
    )
