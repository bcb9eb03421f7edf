"""Make the report of a stall: read what all ranks say, find the cause, ask the linter, write the files."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from spmdguard.format import format_ranks
from spmdguard.watch.cause import FAILED, STALLED, Cause
from spmdguard.watch.diagnosis import Diagnosis, diagnose
from spmdguard.watch.hints import Hint, Linting, files_of
from spmdguard.watch.html_report import render_html
from spmdguard.watch.json_report import render_json
from spmdguard.watch.leaving import say
from spmdguard.watch.partings import Arm
from spmdguard.watch.report import LEFT_KINDS, Report, render_text, summarise
from spmdguard.watch.standing import Standing
from spmdguard.watch.trace_report import render_trace

HINT_TIMEOUT_S = 1.0
UNHURRIED_HINT_TIMEOUT_S = 2.0


def compose(
    standings: Sequence[Standing],
    *,
    world_size: int,
    limit_s: float,
    reason: str,
    linting: Linting | None,
    hint_timeout_s: float = HINT_TIMEOUT_S,
) -> Report:
    """The report on where these ranks stand."""
    started_s = time.monotonic()
    diagnosis = diagnose(standings, world_size)
    places = diagnosis.places()
    hints: list[Hint] | None = None
    if linting is None or not linting.covers(places):
        if linting is not None:
            linting.stop()
        linting = Linting(files_of(places))
    if diagnosis.kind in ("aborted", "ended"):  # the linter may have gone with the rank that left
        hint_timeout_s = max(hint_timeout_s, UNHURRIED_HINT_TIMEOUT_S)
    hints = linting.find(diagnosis.stacks(), hint_timeout_s)
    return Report(
        diagnosis=sharpen(diagnosis, hints or []),
        standings=tuple(standings),
        hints=None if hints is None else tuple(hints),
        limit_s=limit_s,
        reason=reason,
        when=datetime.now().astimezone().strftime("%Y-%m-%d %H:%M:%S %z"),
        now_s=time.time(),
        waited_s=diagnosis.longest_s + time.monotonic() - started_s,
    )


def sharpen(diagnosis: Diagnosis, hints: Sequence[Hint]) -> Diagnosis:
    """Where as many ranks stand on each side of a parting, suspect those on the side that the linter flags."""
    parting = diagnosis.parting
    if diagnosis.kind != "parted" or parting is None or len(parting.arms) < 2:
        return diagnosis
    if set(diagnosis.suspects) != {rank for arm in parting.arms for rank in arm.ranks}:
        return diagnosis
    for hint in hints:
        flagged = [arm for arm in parting.arms if _is_at(arm, hint.file, [hint.line])]
        waiting = [arm for arm in parting.arms if _is_at(arm, hint.file, hint.others)]
        if not flagged and len(waiting) == 1:
            flagged = [arm for arm in parting.arms if arm not in waiting]
        if len(flagged) == 1:
            return replace(diagnosis, suspects=flagged[0].ranks)
    return diagnosis


def _is_at(arm: Arm, file: str, lines: Sequence[int]) -> bool:
    return any(place.file == file and place.line in lines for place in arm.places)


def to_cause(report: Report) -> Cause:
    """The report as the run's first cause."""
    ranks = format_ranks(report.diagnosis.suspects)
    kind = FAILED if report.diagnosis.kind in LEFT_KINDS else STALLED
    return Cause(kind, ranks, summarise(report.diagnosis), render_text(report))


def write_reports(report: Report, folder: Path) -> list[Path]:
    """Write the report in every form; says on stderr where it cannot."""
    stamp = datetime.fromtimestamp(report.now_s or time.time()).strftime("%Y%m%d-%H%M%S")
    forms = {
        f"stall-{stamp}.txt": render_text,
        f"stall-{stamp}.json": render_json,
        f"stall-{stamp}.html": render_html,
        f"stall-{stamp}.trace.json": render_trace,
    }
    written = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, render in forms.items():
            (folder / name).write_text(f"{render(report)}\n", encoding="utf-8")
            written.append(folder / name)
    except OSError as failure:
        say(f"spmdguard: cannot write the report to {folder}: {failure}")
    return written
