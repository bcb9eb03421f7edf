"""The fault matrix: every fault at every place ends in time, with the right codes, cause, tracker, checkpoint."""

from __future__ import annotations

from pathlib import Path

import pytest

from ..processes import Zygote
from .cells import CELLS, KINDS, PLACES, QUICK, Cell
from .running import run_cell

NUM_CELLS = 343


def test_the_matrix_has_every_cell_that_exists() -> None:
    """Its size is known, and the part that always runs has every kind and every place."""
    assert len(CELLS) == NUM_CELLS
    assert {cell.kind for cell in QUICK} == set(KINDS)
    assert {cell.place for cell in QUICK} == set(PLACES)


@pytest.mark.processes
@pytest.mark.parametrize(
    "cell",
    [pytest.param(cell, id=cell.name, marks=[] if cell in QUICK else pytest.mark.long) for cell in CELLS],
)
def test_every_fault_ends_as_it_must(zygote: Zygote, cell: Cell) -> None:
    """Codes, time, root cause first, tracker status, newest checkpoint complete, nothing left."""
    seen = run_cell(zygote, cell)
    assert seen.problems == [], seen.report


@pytest.mark.processes
def test_the_judgement_can_fail(zygote: Zygote, tmp_path: Path) -> None:
    """Judged as another cell, the same run is found wrong in code, tracker and cause."""
    from .running import find_ending_problems

    ended = zygote.run("matrix:struck", ranks=3, folder=tmp_path, kind="sigterm", place="barrier", who=[0])
    assert len(find_ending_problems(Cell("exception", "barrier", "main"), ended)) == 3
