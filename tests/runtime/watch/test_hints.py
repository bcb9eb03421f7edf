"""The linter is asked about the lines at which ranks stand; its answer is data from a process, read with care."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spmdguard
from spmdguard.watch.composing import UNHURRIED_HINT_TIMEOUT_S, compose, to_cause
from spmdguard.watch.hints import Hint, Linting, files_of, read_hints
from spmdguard.watch.standing import Call, Place

from .making import call, elsewhere, waiting

DEMO = Path(spmdguard.__file__).parent / "demo" / "hangs.py.txt"


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The script of the demonstration: rank 1 leaves its loop at line 17, the others reduce at line 19."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(DEMO, tmp_path / "hangs.py")
    return tmp_path / "hangs.py"


def finding(row: int, trail: list[int], **more: Any) -> dict[str, Any]:
    at = {"row": row, "column": 1}
    data = {
        "code": "SPG102",
        "name": "early-exit-past-collective",
        "severity": "error",
        "certainty": "likely",
        "message": "`break` leaves",
        "help": "agree",
        "filename": "train.py",
        "location": at,
        "end_location": at,
        "trail": [
            {"filename": "train.py", "location": {"row": line, "column": 1}, "message": f"step {line}"}
            for line in trail
        ],
        "traces": {"diverging": ["leaves the loop"], "others": ["dist.all_reduce(x) (line 19)"]},
    }
    return {**data, **more}


def read(findings: object, *stacks: int | tuple[int, ...]) -> list[Hint]:
    """What is shown where ranks stand at these lines, innermost first."""
    lines = [each if isinstance(each, tuple) else (each,) for each in stacks]
    places = [[Place("train.py", line, "main") for line in stack] for stack in lines]
    return read_hints(json.dumps(findings).encode(), places)


def test_the_linter_names_the_line_that_the_stacks_lack(script: Path) -> None:
    """Asked about where ranks wait, the linter shows where one left, and that decides whom to suspect."""
    linting = Linting(["hangs.py"])
    calls: list[Call] = [call(1, "all_reduce", 19), call(2, "all_reduce", 19)]
    ranks = [
        waiting(0, 2, [_in_script(each) for each in calls]),
        waiting(1, 2, [_in_script(calls[0]), _in_script(call(2, "barrier", 21))]),
    ]
    report = compose(ranks, world_size=2, limit_s=1.0, reason="", linting=linting, hint_timeout_s=60.0)
    assert report.hints is not None
    assert (report.hints[0].line, report.hints[0].code) == (17, "SPG102")
    assert report.diagnosis.suspects == (1,)
    assert "hangs.py:17 SPG102" in to_cause(report).report


class _AskedFor(Linting):
    """Keeps how long it may take, and finds nothing."""

    def __init__(self) -> None:
        super().__init__([])
        self.timeouts_s: list[float] = []

    def find(self, stacks: Sequence[Sequence[Place]], timeout_s: float) -> list[Hint] | None:
        self.timeouts_s.append(timeout_s)
        return []


def test_a_rank_that_ended_well_leaves_time_for_the_linter() -> None:
    """It may have taken the linter with it, and nothing presses: a new one has time to read the program."""
    asked = _AskedFor()
    shared = [call(1, "all_reduce", 10)]
    waits = waiting(0, 2, [*shared, call(2, "barrier", 20)])
    for state in ("ended", "died"):
        ranks = [waits, elsewhere(1, 2, shared, 10, state=state)]
        compose(ranks, world_size=2, limit_s=1.0, reason="", linting=asked, hint_timeout_s=0.3)
    assert asked.timeouts_s == [UNHURRIED_HINT_TIMEOUT_S, 0.3]


def _in_script(each: Call) -> Call:
    places = tuple(Place("hangs.py", place.line, place.function) for place in each.places)
    return Call(each.group, each.number, each.operation, places, each.done, began_s=each.began_s)


def test_a_linter_that_is_late_is_ended(script: Path) -> None:
    """Where the linter does not answer in time there is no answer, and no process is left."""
    linting = Linting(["hangs.py"])
    process = linting._process
    assert process is not None
    assert linting.find([[Place("hangs.py", 19, "train")]], 0.0) is None
    deadline_s = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < deadline_s:
        time.sleep(0.01)
    assert process.poll() is not None


def test_only_findings_about_the_places_are_shown() -> None:
    """A finding counts on its own line, or by a line of its trail or counter-example; on its own line first."""
    nowhere = {"diverging": ["ends"], "others": ["end"]}
    found = [finding(50, [51], traces=nowhere), finding(17, [16, 19], traces=nowhere), finding(19, [])]
    assert [hint.line for hint in read(found, 19)] == [19, 17]
    assert [hint.line for hint in read([finding(17, [16])], 19)] == [17]
    assert read(found, 99) == []


def test_surer_findings_come_first() -> None:
    """Of findings that relate alike, a definite one comes before a possible one."""
    found = [finding(16, [19], certainty="possible"), finding(17, [19], certainty="definite")]
    assert [hint.certainty for hint in read(found, 19)] == ["definite", "possible"]


PROGRAM = """\
def reduce(x):
    all_reduce(x)


def evaluate(rank, x):
    if rank == 0:
        return
    reduce(x)


def train(rank, x):
    for epoch in range(3):
        for step in range(9):
            reduce(x)
            stop = check(rank)
            if stop:
                break
        if stop:
            break
    barrier()
    save(x)
    evaluate(rank, x)


train(0, 1)
"""
IN_LOOP, AFTER_LOOP = (2, 14, 25), (20, 25)
"""Stacks of one rank in the inner loop, and of one that has left it."""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(PROGRAM)


def test_a_finding_in_the_loop_comes_before_one_elsewhere(program: None) -> None:
    """The exit from the loop that one rank is in comes before an exit elsewhere that leads to the same call."""
    found = [
        finding(7, [6, 2], certainty="definite"),
        finding(19, [18], code="SPG301"),
        finding(17, [16], code="SPG301"),
    ]
    assert [hint.line for hint in read(found, IN_LOOP, AFTER_LOOP)] == [17, 19, 7]


def test_a_finding_beside_the_line_is_shown(program: None) -> None:
    """No line of the finding is one where a rank stands, but it is in the same loop or function, and says so."""
    (hint,) = read([finding(15, [])], IN_LOOP, AFTER_LOOP)
    assert (hint.line, hint.names_line) == (15, False)
    assert [hint.names_line for hint in read([finding(20, [])], IN_LOOP, AFTER_LOOP)] == [True]
    assert read([finding(6, [])], IN_LOOP, AFTER_LOOP) == []


def test_a_rule_about_something_else_comes_after_partings(program: None) -> None:
    """A rule of the 6xx comes after one about partings, and only where it names a line; on the very line, first."""
    parting, on_way, beside = (
        finding(17, []),
        finding(21, [20], code="SPG601"),
        finding(21, [], code="SPG701"),
    )
    assert [h.code for h in read([on_way, beside, parting], IN_LOOP, AFTER_LOOP)] == ["SPG102", "SPG601"]
    there = finding(20, [], code="SPG601")
    assert [h.code for h in read([parting, there], IN_LOOP, AFTER_LOOP)] == ["SPG601", "SPG102"]


def test_frames_that_all_ranks_share_tell_nothing(program: None) -> None:
    """A finding on a call in which every rank stands does not explain why they parted; with one stack it may."""
    found = [finding(25, [])]
    assert read(found, IN_LOOP, AFTER_LOOP) == []
    assert [hint.line for hint in read(found, IN_LOOP)] == [25]


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(st.sampled_from(sorted(finding(1, []))), _json, max_size=3))
def test_any_answer_is_read_without_harm(wrong: dict[str, Any]) -> None:
    """Findings with wrong fields are left out; what is shown is printable."""
    for hint in read([{**finding(19, [19]), **wrong}], 19):
        texts = [hint.file, hint.code, hint.name, hint.message, hint.help, *(text for _, text in hint.steps)]
        assert [text for text in texts if not text.isprintable()] == []


def test_an_answer_that_is_no_json_is_none() -> None:
    """A broken or endless answer gives no finding."""
    assert read_hints(b"{", [[Place("train.py", 1, "main")]]) == []
    assert read_hints(b" " * 5_000_000, [[Place("train.py", 1, "main")]]) == []


def test_only_files_that_exist_are_linted(script: Path) -> None:
    """Places without a Python file on disk are not asked about."""
    places = [
        Place("hangs.py", 1, "f"),
        Place("<string>", 1, "f"),
        Place("gone.py", 1, "f"),
        Place("hangs.py", 2, "f"),
    ]
    assert files_of(places) == ["hangs.py"]
