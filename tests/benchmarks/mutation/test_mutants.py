"""The mutation benchmark picks the right statements and injects what it says."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.benchmarks.mutation.mutants import MUTATIONS
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
