"""The defects: each takes a file's lines and a target, and gives the file's text with the defect in it.

Only text around the target statement changes, so every other line keeps its meaning. The injected code uses
names of its own (``_spmd``) for ``torch.distributed``, imported where it is used.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.benchmarks.mutation.targets import Target

IMPORT = "import torch.distributed as _spmd"


@dataclass(frozen=True)
class Mutant:
    """A file's text with one defect; its injected lines are ``first`` to ``last``."""

    kind: str
    text: str
    first: int
    last: int
    grown: int  # lines added


def _build(
    kind: str, lines: list[str], target: Target, before: list[str], inner: str, after: list[str]
) -> Mutant:
    """Put ``before`` and ``after`` around the target statement, which is indented by ``inner``."""
    pad = " " * target.column
    statement = lines[target.start - 1 : target.end]
    new = [pad + line for line in before]
    new += [inner + line if line.strip() else line for line in statement]
    new += [pad + line for line in after]
    text = "\n".join([*lines[: target.start - 1], *new, *lines[target.end :]]) + "\n"
    grown = len(before) + len(after)
    return Mutant(kind, text, target.start, target.end + grown, grown)


def _first_of_group(target: Target) -> str:
    """A test for one rank of the group that the collective is of: others of the group wait for it."""
    return f"if _spmd.get_rank({target.group}) == 0:"


def early_return(lines: list[str], target: Target) -> Mutant | None:
    """The group's first rank returns in front of the collective."""
    before = [IMPORT, _first_of_group(target), "    return None"]
    return _build("early return", lines, target, before, "", [])


def rank_branch(lines: list[str], target: Target) -> Mutant | None:
    """Only the group's first rank performs the collective."""
    return _build("rank branch", lines, target, [IMPORT, _first_of_group(target)], "    ", [])


def _local_work(target: Target) -> list[str]:
    """Work that may fail on one rank alone: reading this rank's own file."""
    return ['    with open(f"part-{_spmd.get_rank()}.txt") as _part:', "        _part.read()"]


def continue_in_handler(lines: list[str], target: Target) -> Mutant | None:
    """Local work and the collective in one try, whose handler goes on with the next turn of the loop."""
    if not target.in_loop:
        return None
    before = [IMPORT, "try:", *_local_work(target)]
    return _build(
        "continue in handler",
        lines,
        target,
        before,
        "    ",
        ["except (OSError, RuntimeError):", "    continue"],
    )


def swallowed(lines: list[str], target: Target) -> Mutant | None:
    """Local work and the collective in one try, whose handler does nothing."""
    before = [IMPORT, "try:", *_local_work(target)]
    return _build("swallowed exception", lines, target, before, "    ", ["except Exception:", "    pass"])


def local_break(lines: list[str], target: Target) -> Mutant | None:
    """The loop is left where this rank's own number is not finite."""
    if not target.in_loop:
        return None
    if target.tensor and target.op in ("all_reduce", "reduce"):
        before = ["import torch as _torch", f"if _torch.isnan({target.tensor}).any():", "    break"]
    else:
        before = ["import torch as _torch", "if _torch.isnan(_torch.randn(1)).any():", "    break"]
    return _build("break on local flag", lines, target, before, "", [])


def moved_destroy(lines: list[str], target: Target) -> Mutant | None:
    """The group is destroyed in front of the collective."""
    return _build("moved destroy", lines, target, [IMPORT, "_spmd.destroy_process_group()"], "", [])


MUTATIONS: tuple[Callable[[list[str], Target], Mutant | None], ...] = (
    early_return,
    rank_branch,
    continue_in_handler,
    swallowed,
    local_break,
    moved_destroy,
)
