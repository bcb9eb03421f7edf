"""What a run's output says: how it failed, which ranks it names, and which lines."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from .launching import Ended

_TIMED_OUT = re.compile(
    r"timed out|wait timeout|timeout after|monitoredBarrier due to timeout", re.IGNORECASE
)
_LOST = re.compile(r"connection (?:closed|reset) by peer|broken pipe|socket error", re.IGNORECASE)
_CAUSE = re.compile(r"spmdguard: rank \d+ (?:leaves|is a victim).*?the cause: (.*)")
_TRACEBACK = re.compile(r"spmdguard: rank (\d+) failed\n(.*?)(?=\nspmdguard:|\Z)", re.DOTALL)
_FRAME = re.compile(r'bad\.py", line (\d+)')
_PLACE = re.compile(r"bad\.py:(\d+)")
_DETAIL_RANKS = re.compile(r"[Rr]ank (\d+)")
_DETAIL = re.compile(
    r"Detected mismatch between collectives on ranks.*|Ranks? [\d, ]+ failed to pass monitoredBarrier.*"
)


@dataclass(frozen=True)
class Diagnosed:
    """What a guarded run said.

    Attributes:
        kind: of the cause; empty where nothing was said.
        ranks: named as the cause.
        stack_lines: of the program, where ranks stand or began different operations, or raised.
        hint_lines: of the linter's findings on those.
        late_s: seconds from the limit to the report; None where it did not wait for the limit.
    """

    kind: str
    ranks: tuple[int, ...]
    stack_lines: tuple[int, ...]
    hint_lines: tuple[int, ...]
    late_s: float | None


def classify(ended: Ended) -> str:
    """How a bare run failed: ``hang``, ``lost`` (a rank left, the others lost the connection), ``error``, ``ok``."""
    if ended.code is None:
        return "hang"
    if ended.code == 0:
        return "ok"
    if _TIMED_OUT.search(ended.log):
        return "hang"
    return "lost" if _LOST.search(ended.log) else "error"


def read_guarded(ended: Ended, limit_s: float) -> Diagnosed:
    """What the report, or the cause where there is no report, says."""
    text = next(
        (text for name, text in ended.reports.items() if re.fullmatch(r"stall-[\d-]+\.json", name)), None
    )
    if text is not None:
        return _read_report(json.loads(text), limit_s)
    failed = _TRACEBACK.search(ended.log)
    if failed is None:
        return Diagnosed("", (), (), (), None)
    lines = tuple(sorted({int(line) for line in _FRAME.findall(failed[2])}))
    return Diagnosed("raised", (int(failed[1]),), lines, (), None)


def _read_report(report: dict[str, Any], limit_s: float) -> Diagnosed:
    lines: set[int] = set()
    for standing in report["ranks"]:
        files = standing.get("files", [])
        lines |= {place[1] for place in standing.get("places", []) if files[place[0]].endswith("bad.py")}
    parting = report["parting"]
    for arm in parting["arms"] if parting else ():
        lines |= {place["line"] for place in arm["places"] if place["file"].endswith("bad.py")}
    hints = report["hints"] or []
    hint_lines = {hint["line"] for hint in hints}
    hint_lines |= {step["line"] for hint in hints for step in hint["trail"]}
    waited_s = report["waited_s"]
    return Diagnosed(
        report["kind"],
        tuple(report["suspects"]),
        tuple(sorted(lines)),
        tuple(sorted(hint_lines)),
        round(waited_s - limit_s, 2) if waited_s >= limit_s else None,
    )


def read_detail(ended: Ended) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Ranks and lines that ``TORCH_DISTRIBUTED_DEBUG=DETAIL`` names in its own messages."""
    messages = "\n".join(_DETAIL.findall(ended.log))
    ranks = {int(rank) for rank in _DETAIL_RANKS.findall(messages)}
    ranks |= {
        int(n)
        for found in re.findall(r"Ranks? ([\d, ]+) failed", messages)
        for n in re.findall(r"\d+", found)
    }
    return tuple(sorted(ranks)), tuple(int(line) for line in _PLACE.findall(messages))
