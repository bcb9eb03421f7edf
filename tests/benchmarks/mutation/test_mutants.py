"""The mutation benchmark picks the right statements and injects what it says."""

from __future__ import annotations

import ast
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.benchmarks.mutation import run
from tests.benchmarks.mutation.mutants import MUTATIONS
from tests.benchmarks.mutation.run import judge
from tests.benchmarks.mutation.targets import targets

SOURCE = """
import torch
import torch.distributed as dist
from torch.distributed import all_reduce as add


class Meter:
    def sync(self, parts):
        for part in parts:
            add(
                part,
            )

    def only_main(self):
        if dist.get_rank() == 0:
            dist.barrier()

    def leader_only(self):
        self.leads = dist.get_rank() == 0
        if self.leads:
            dist.barrier()

    def after_return(self, rank):
        if rank != 0:
            return
        dist.barrier()


def fence():
    if dist.is_initialized():
        dist.barrier()


def gather(tensors):
    return torch.stack(tensors).gather(0, torch.zeros(1))
"""


def _targets(tmp_path: Path) -> tuple[Path, dict[str, object]]:
    path = tmp_path / "sample.py"
    path.write_text(SOURCE)
    return path, {t.function: (t.op, t.start, t.tensor, t.in_loop) for t in targets(path)}


def test_targets_are_collectives_that_every_rank_reaches(tmp_path: Path) -> None:
    """Rank branches, code behind a rank's return, and ``torch.gather`` are no targets."""
    assert _targets(tmp_path)[1] == {
        "sync": ("all_reduce", 10, "part", True),
        "fence": ("barrier", 31, "", False),
    }


def test_mutants_parse_and_keep_every_line(tmp_path: Path) -> None:
    """Each defect that applies gives a valid file which still holds the original statements."""
    path, _ = _targets(tmp_path)
    kinds: dict[str, list[str]] = {}
    for target in targets(path):
        for mutation in MUTATIONS:
            mutant = mutation(SOURCE.splitlines(), target)
            if mutant is None:
                continue
            kinds.setdefault(target.function, []).append(mutant.kind)
            ast.parse(mutant.text)
            stripped = [line.strip() for line in mutant.text.splitlines()]
            assert [line for line in map(str.strip, SOURCE.splitlines()) if line not in stripped] == []
            assert len(stripped) == len(SOURCE.splitlines()) + mutant.grown
    everywhere = ["early return", "rank branch", "swallowed exception", "moved destroy"]
    in_loops = ["early return", "rank branch", "continue in handler", "swallowed exception"]
    assert kinds == {"sync": [*in_loops, "break on local flag", "moved destroy"], "fence": everywhere}


def _found(tmp_path: Path, body: str) -> dict[str, tuple[str, ...]]:
    path = tmp_path / "sample.py"
    path.write_text("import torch.distributed as dist\n\n\ndef sync(x, count):\n" + body)
    (target,) = targets(path)
    return {result.kind: result.codes for result in judge(target)}


def _report(message: str, row: int) -> SimpleNamespace:
    site = SimpleNamespace(start=SimpleNamespace(row=row))
    return SimpleNamespace(code="SPG101", message=message, site=site, trail=())


def test_mutants_are_found_beside_what_was_said_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A finding of the file's own hides none of the same code about the injected lines, and counts for none."""
    said = {"before": "depends on the data", "after": "depends on the data", "row": 5}
    monkeypatch.setattr(
        run,
        "findings",
        lambda text, filename: [_report(said["after" if "_spmd" in text else "before"], said["row"])],
    )
    assert _found(tmp_path, "    dist.all_reduce(x)\n")["rank branch"] == ()
    said["after"] = "depends on the rank"
    assert _found(tmp_path, "    dist.all_reduce(x)\n")["rank branch"] == ("SPG101",)
    said["row"] = 4  # in the function, but not at the injected lines
    assert _found(tmp_path, "    dist.all_reduce(x)\n")["rank branch"] == ()


def test_mutants_that_are_not_found_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check can fail: of a linter that says the same of every file, no mutant is found."""
    monkeypatch.setattr(run, "findings", lambda text, filename: [])
    assert set(_found(tmp_path, "    dist.all_reduce(x)\n").values()) == {()}
