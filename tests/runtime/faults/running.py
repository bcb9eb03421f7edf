"""Run one cell with real gloo processes, and say what is wrong with how it ended."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

import spmdguard
from spmdguard.checkpoint.manifest import find_problem
from spmdguard.checkpoint.names import parse_published

from ..processes import Ranks, Zygote
from .cells import NUM_RANKS, Cell

BOUND_S = 20.0
STOPPED_S = 5.0
CAUSE = "the fault of the matrix"


@dataclass(frozen=True)
class Seen:
    """How a cell ended."""

    cell: Cell
    codes: list[int | None]
    seconds: float
    problems: list[str]
    report: str


def run_cell(zygote: Zygote, cell: Cell) -> Seen:
    """Checkpoint 1 is there already; the fault strikes; what is left is judged."""
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        spmdguard.save_checkpoint(
            work / "saved", step=1, save_state=lambda path: (path / "rank0").write_text("1")
        )
        ended = zygote.run(
            "matrix:struck",
            ranks=NUM_RANKS,
            timeout_s=BOUND_S,
            folder=work,
            one_stderr=True,
            kind=cell.kind,
            place=cell.place,
            who=list(cell.ranks),
        )
        problems = [*find_ending_problems(cell, ended), *find_checkpoint_problems(work / "saved")]
    return Seen(cell, [each.code for each in ended.ranks], ended.seconds, problems, ended.report())


def find_ending_problems(cell: Cell, ended: Ranks) -> list[str]:
    """Codes, time, root cause first, tracker."""
    problems = []
    codes = [each.code for each in ended.ranks]
    if codes != cell.codes():
        problems.append(f"codes {codes} instead of {cell.codes()}")
    if ended.hung or ended.num_left_over:
        problems.append(f"hung: {ended.hung}, left over: {ended.num_left_over}")
    if cell.kind == "sigstop" and ended.seconds < STOPPED_S:
        problems.append(f"nobody was stopped: ended after {ended.seconds:.1f} s")
    shown = [line for line in ended[0].out.splitlines() if line.startswith("tracker: ")]
    status = cell.status()
    if status is not None and shown != [f"tracker: {status}"]:
        problems.append(f"{shown} instead of tracker: {status}")
    if cell.has_cause():
        lines = [line for line in ended.err.splitlines() if is_error_line(line)]
        if not lines or CAUSE not in lines[0]:
            problems.append(f"first on stderr: {lines[:1]}")
    return problems


def is_error_line(line: str) -> bool:
    """Whether a line, of a traceback or of a log, names an exception."""
    if line.startswith("spmdguard: rank ") and " was interrupted (" in line:
        return True  # in place of a traceback
    if line.startswith((" ", "Traceback", "spmdguard: rank", "the checkpoint of step")):
        return False
    return any(word in line for word in ("Error", "Exception", "Interrupt", "Unpicklable", "TwoArguments"))


def find_checkpoint_problems(saved: Path) -> list[str]:
    """The newest complete checkpoint is one that was saved, and it loads."""
    found = spmdguard.latest_checkpoint(saved)
    if found is None:
        return ["no checkpoint is left"]
    published = parse_published(found.name)
    if published is None or find_problem(found, published.step):
        return [f"{found.name} is not complete"]
    texts = {path.read_text() for path in found.glob("rank*")}
    num_files = len(list(found.glob("rank*")))
    wanted = 1 if published.step == 1 else NUM_RANKS
    if texts != {str(published.step)} or num_files != wanted:
        return [f"{found.name} holds {sorted(texts)} in {num_files} files"]
    return []
