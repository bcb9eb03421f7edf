"""Multi-process failures: before, inside and after a collective; which rank; which step; how many ranks."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import NamedTuple

import pytest

from .processes import Ranks, Zygote

pytestmark = pytest.mark.processes
BOUND_S = 20.0
KINDS = ("local before", "plain before", "inside", "local after", "plain after")
WHO = ("main", "other", "two")
STEPS = (0, 2, 3)
WORLDS = (1, 2, 4)


class Cell(NamedTuple):
    """One failure: how and where, on which ranks, in which step, in how many ranks."""

    kind: str
    who: str
    step: int
    world: int

    @property
    def ranks(self) -> list[int]:
        return {"main": [0], "other": [self.world - 1], "two": [0, self.world - 1]}[self.who]

    @property
    def name(self) -> str:
        return f"{self.kind}, {self.who}, step {self.step}, world {self.world}".replace(" ", "_")


def every_cell() -> list[Cell]:
    cells = [Cell(*values) for values in itertools.product(KINDS, WHO, STEPS, WORLDS)]
    return [cell for cell in cells if cell.world > 1 or cell.who == "main"]


def pairwise(cells: list[Cell]) -> list[Cell]:
    """A subset in which every pair of values of two dimensions that occurs at all occurs."""
    missing = {pair for cell in cells for pair in pairs(cell)}
    chosen = []
    while missing:
        best = max(cells, key=lambda cell: len(missing & pairs(cell)))
        chosen.append(best)
        missing -= pairs(best)
    return chosen


def pairs(cell: Cell) -> set[tuple[tuple[int, object], ...]]:
    return set(itertools.combinations(enumerate(cell), 2))


CELLS = every_cell()
QUICK = set(pairwise(CELLS))


@pytest.mark.parametrize(
    "cell",
    [pytest.param(cell, id=cell.name, marks=[] if cell in QUICK else pytest.mark.long) for cell in CELLS],
)
def test_every_failure_ends_the_right_way(zygote: Zygote, cell: Cell) -> None:
    """All ranks end in time with the right codes, the root cause first on stderr, no process left."""
    ended = zygote.run(
        "ending:guarded",
        ranks=cell.world,
        timeout_s=BOUND_S,
        one_stderr=True,
        kind=cell.kind,
        step=cell.step,
        failing=cell.ranks,
    )
    assert (ended.hung, ended.num_left_over) == ([], 0), ended.report()
    if cell.kind.startswith("local"):
        check_controlled(ended, cell)
    else:
        check_emergency(ended, cell)
    causes = [f"Upload: upload of rank {rank} in step {cell.step}" for rank in cell.ranks]
    errors = [line for line in ended.err.splitlines() if is_error_line(line)]
    assert any(errors[0].endswith(cause) for cause in causes), ended.report()


def is_error_line(line: str) -> bool:
    """Whether a line of a traceback names the exception."""
    return (not line.startswith((" ", "spmdguard", "Traceback", "deferred an")) and "Error: " in line) or (
        line.startswith("runtime.scenarios.ending.Upload") or line.startswith("Upload: ")
    )


def check_controlled(ended: Ranks, cell: Cell) -> None:
    """Every rank finishes the step; ranks that failed raise; the main rank raises where any rank failed."""
    failing = {*cell.ranks, 0}
    assert [int(rank in failing) for rank in range(cell.world)] == [
        fix_abort(ended, rank, rank in failing) for rank in range(cell.world)
    ], ended.report()
    for each in ended.ranks:
        steps = [line for line in each.out.splitlines() if line.startswith("finished step")]
        assert cell.step + 1 == len(steps), ended.report()
    expected = "FAILED Upload" if 0 in cell.ranks else "FAILED OtherRanksFailed"
    assert f"reporter closed: {expected}" == ended[0].out.splitlines()[-1]
    assert "post_train" not in ended[0].out


def check_emergency(ended: Ranks, cell: Cell) -> None:
    """No rank reports success; ranks that lost their partner name the rank that failed first."""
    assert [1] * cell.world == [fix_abort(ended, rank, True) for rank in range(cell.world)], ended.report()
    assert "reporter closed: FAILED" in ended[0].out
    for rank in set(range(cell.world)) - set(cell.ranks):
        assert f"spmdguard: rank {rank} lost its partner; rank " in ended.err, ended.report()


def fix_abort(ended: Ranks, rank: int, fails: bool) -> int | None:
    """The exit code; gloo's abort while the interpreter is finalised stands for what was due."""
    return int(fails) if ended[rank].aborted_at_exit else ended[rank].code


@pytest.mark.parametrize("form", ["function", "context", "decorator"])
def test_success_runs_everything(zygote: Zygote, form: str) -> None:
    """Without a failure all forms end with code 0, after post_train on the main rank only."""
    ended = zygote.run("ending:guarded", ranks=2, kind="none", failing=[], step=0, form=form)
    assert ended.codes == [0, 0], ended.report()
    main, other = (each.out.splitlines() for each in ended.ranks)
    assert ["reporter opened", *other] == [
        line for line in main if line not in ("post_train", "reporter closed: FINISHED")
    ]
    assert main.index("post_train") < main.index("reporter closed: FINISHED")
    assert other[-1] == "trained"


def test_error_files_name_the_root_cause(zygote: Zygote, tmp_path: Path) -> None:
    """Every failed rank writes torchelastic's file; a consequence is dated after its cause."""
    files = [tmp_path / f"{rank}.json" for rank in range(2)]
    ended = zygote.run(
        "ending:guarded",
        ranks=2,
        env={"TORCHELASTIC_ERROR_FILE": str(tmp_path / "RANK.json")},
        kind="inside",
        failing=[1],
        step=1,
    )
    assert [each.failed for each in ended.ranks] == [True, True], ended.report()
    other, root = (json.loads(file.read_text())["message"] for file in files)
    assert root["message"] == "Upload: upload of rank 1 in step 1"
    assert "consequence of the failure of rank 1: Upload" in other["extraInfo"]["py_callstack"]
    assert int(other["extraInfo"]["timestamp"]) > int(root["extraInfo"]["timestamp"])


@pytest.mark.parametrize(("fails", "code"), [(False, 70), (True, 71)])
def test_a_hung_teardown_ends_with_a_documented_code(zygote: Zygote, fails: bool, code: int) -> None:
    """Where destroying never returns, the process ends in bounded time; its error was written before."""
    ended = zygote.run("ending:hung_teardown", ranks=2, timeout_s=BOUND_S, fails=fails)
    assert ([], code) == (ended.hung, ended[0].code), ended.report()
    lines = ended[0].err.splitlines()
    hung = lines.index("spmdguard: destroy_process_group did not return within 1 s")
    if fails:
        assert "OSError: root cause" in lines[:hung]
    assert "reporter closed: FAILED" in ended[0].out


@pytest.mark.parametrize(("how", "code"), [("sys.exit(3)", 3), ("interrupt", 130), ("end", 0)])
def test_exit_process_keeps_code_and_output(zygote: Zygote, how: str, code: int) -> None:
    """Ending without finalisation keeps the exit code Python would give, and flushes output."""
    ended = zygote.run("ending:ends_by", ranks=2, timeout_s=BOUND_S, how=how)
    assert [code, code] == [each.code for each in ended.ranks], ended.report()
    if how == "end":
        assert [each.out for each in ended.ranks] == ["not flushed yet"] * 2


def test_a_failing_post_train_is_a_failure(zygote: Zygote) -> None:
    """An error of post_train ends the main rank with it, and the reporter is told."""
    ended = zygote.run("ending:post_train_fails", ranks=2)
    assert ([each.failed for each in ended.ranks], ended.hung) == ([True, False], []), ended.report()
    assert "reporter closed: FAILED ValueError" in ended[0].out
    assert "spmdguard: rank 0 failed" in ended[0].err


@pytest.mark.parametrize("agent_store", [True, False])
def test_others_do_not_wait_for_the_reporter(zygote: Zygote, agent_store: bool) -> None:
    """Ranks that lose their partner end, and name the cause, while that one's reporter is still closing."""
    ended = zygote.run("ending:slow_reporter", ranks=4, timeout_s=BOUND_S, agent_store=agent_store)
    assert ended.hung == [], ended.report()
    for each in ended.ranks[1:]:
        assert "rank 0 failed first: Upload: upload of rank 0 in step 1" in each.err, ended.report()
        assert each.seconds < ended[0].seconds - 2, ended.report()
