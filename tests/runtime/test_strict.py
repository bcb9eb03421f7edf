"""Strict mode: what is undecorated is reported with counts and places, and nothing else."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

import spmdguard
from spmdguard.testing import SimulatedWorld

from .processes import Zygote


@pytest.mark.processes
def test_undecorated_work_is_reported_on_every_rank_alike(zygote: Zygote, tmp_path: Path) -> None:
    """Collectives outside `@collective`, of DDP too, and files that one rank alone writes; the same everywhere."""
    ended = zygote.run("watching:watched", ranks=2, folder=tmp_path)
    assert ended.codes == [0, 0], ended.report()
    expected = [
        "True",
        "allreduce | in watched | {0: 3, 1: 3}",
        "allreduce | in watched | {0: 1, 1: 1}",
        "broadcast | in watched | {0: 2, 1: 2}",
        "new_group | in watched | {0: 1, 1: 1}",
        "open | in watched | {0: 1}",
    ]
    for each in ended.ranks:
        lines = each.out.splitlines()
        assert sorted(expected) == sorted(lines), ended.report()


def test_decorated_work_is_not_reported(tmp_path: Path) -> None:
    """Rank-local files, and everything of this package, are fine; a process alone compares with nobody."""

    @spmdguard.strict_mode(error=True)
    def train() -> str:
        with spmdguard.deferring("write"):
            (tmp_path / "x").write_text("x")
        spmdguard.save_checkpoint(tmp_path / "saved", step=1, save_state=lambda path: None)
        return "done"

    assert train() == "done"


def test_single_ranks_are_told_apart(tmp_path: Path) -> None:
    """A file that every rank writes is no finding, one that some write is, with their ranks and counts."""

    def train() -> tuple[list[str], bool]:
        with spmdguard.strict_mode() as report:
            (tmp_path / "every").write_text("x")
            if not spmdguard.is_main_process():
                (tmp_path / "some").write_text("x")
                (tmp_path / "some").unlink(missing_ok=True)
        return [f"{each.what} {sorted(each.counts)}" for each in report.main_only], report.compared

    expected = ["open [1, 2]", "os.remove [1, 2]"]
    assert SimulatedWorld(3, torch=False).run(train) == [(expected, True)] * 3


def test_every_rank_raises_alike(tmp_path: Path) -> None:
    """With `error=True` all ranks raise, with the same findings, also where one rank alone did the work."""

    def train() -> None:
        with spmdguard.strict_mode(error=True):
            if spmdguard.is_main_process():
                (tmp_path / "x").write_text("x")

    texts = [str(each.error) for each in SimulatedWorld(2, torch=False).outcomes(train)]
    assert texts[0] == texts[1]
    assert texts[0].startswith("0 collectives and 1 pieces of work of single ranks are undecorated")


def test_an_exception_leaves_without_communication(tmp_path: Path) -> None:
    """The block's exception goes on at once; the report holds what this rank saw."""
    guard = spmdguard.strict_mode(error=True)
    with pytest.raises(KeyError), guard:
        (tmp_path / "x").write_text("x")
        raise KeyError
    assert (guard.report.compared, len(guard.report.main_only)) == (False, 1)
    assert "test_strict.py" in str(guard.report) and "1 time on rank 0" in str(guard.report)


def test_a_report_says_that_everything_is_decorated() -> None:
    """Also in words."""
    with spmdguard.strict_mode() as report:
        pass
    assert (bool(report), str(report)) == (False, "everything is decorated")


def test_it_cannot_be_nested() -> None:
    """One block a thread."""
    with spmdguard.strict_mode(), pytest.raises(RuntimeError, match="on already"):
        spmdguard.strict_mode().__enter__()


def test_an_import_that_keeps_its_bytecode_is_no_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What Python writes when it imports a module for the first time."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "pycache_prefix", None)
    (tmp_path / "imported_under_strict_mode.py").write_text("VALUE = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    with spmdguard.strict_mode() as report:
        importlib.import_module("imported_under_strict_mode")
    assert (tmp_path / "__pycache__").is_dir()
    assert report.main_only == ()
