"""Wrong launches of whole processes, as a launcher starts them; the full table is a benchmark."""

from __future__ import annotations

from dataclasses import replace

import pytest

pytest.importorskip("torch")

from tests.benchmarks.launch_faults.cases import CASES, Case
from tests.benchmarks.launch_faults.running import Told, find_shortfalls, launch

pytestmark = pytest.mark.processes
QUICK = {"duplicate rank 1", "wrong MASTER_PORT", "port taken by another job"}
DEADLINE_S = 60.0  # far off: what is named at once does not wait for it


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=case.name, marks=[] if case.name in QUICK else pytest.mark.long)
        for case in CASES
    ],
)
def test_every_surviving_process_is_told(case: Case) -> None:
    """Each process is told the fault with the processes and hosts concerned: at once, or at the deadline."""
    deadline_s = DEADLINE_S if case.at_once else 5.0
    told = launch(case, guarded=True, deadline_s=deadline_s, bound_s=DEADLINE_S)
    assert find_shortfalls(case, told, deadline_s) == []


def test_shortfalls_are_found() -> None:
    """The check can fail: silence, a wrong fault, an unnamed process and a process that still waits are found."""
    case = next(case for case in CASES if case.name == "duplicate rank 1")
    report = {"pid": 2, "rank": "1", "codes": ["jobs-differ"], "text": "x", "seconds": 0.1, "failed": True}
    told = Told([report], [1, 2, 3], 1, 1.0)
    found = find_shortfalls(case, told, 5.0)
    assert found == [
        "1 processes still waited",
        "1 of 3 processes gave a report",
        "rank 1 was told ['jobs-differ']",
        "rank 1 was not told process 2 on host b",
        "rank 1 was not told process 3 on host b",
        "no process was told duplicate-rank",
    ]
    late = replace(told, reports=[{**report, "seconds": 9.0}])
    assert "rank 1 was told after 9.0 s" in find_shortfalls(case, late, 5.0)
