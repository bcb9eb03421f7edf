"""Ranks that join the process group, where others use it without having joined.

Method: a rank of a small world is followed through the tree of a root. Where a condition is not known it may go either
way, and what both ways hold counts as met. Cost: linear in the tree for each rank of three worlds, only for roots with
an ``init_process_group`` in a branch on the rank.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from ..traces.nodes import APART, Branch, Call, Jump, Loop, Op, Region, Tree, Try, Yielded
from ..values.evaluate import Valuation, rank_dependent, truth
from .support_trees import WORLDS, Step, waits

if TYPE_CHECKING:
    from ..analysis import Root

JOIN = "init_process_group"
_OTHER = frozenset({JOIN, "destroy_process_group", "handshake"})
_FAR = frozenset({"raise", "exit", "assert"})


class Joined(NamedTuple):
    """A call by which some ranks join, the branch that chooses them, and what the others meet in."""

    step: Step
    branch: Branch
    met: Op


def joined_by_some(root: Root) -> Iterator[Joined]:
    """Calls that make the group on some ranks, in worlds of every size, while the others use it."""
    if JOIN not in root.contents.ops:
        return
    for step in root.steps:
        if not isinstance(step.node, Op) or step.node.name != JOIN or not _of_all(step.node):
            continue
        branch = next(
            (n for n, _ in step.path if isinstance(n, Branch) and rank_dependent(n.condition)), None
        )
        if branch is None:
            continue
        met = [_met_without(root.tree, world, local) for world, local in WORLDS]
        if met[0] is not None and all(met):
            yield Joined(step, branch, met[0])
            return


def _of_all(op: Op) -> bool:
    """Whether a call makes the group of all ranks: no size is given, or that of the world."""
    return "init" in op.text and (
        "size" not in op.text or any(value.tag == "world" for value in op.invariant)
    )


def _met_without(tree: Tree, world: int, local: int) -> Op | None:
    """The operation that a rank meets which never joins, where another rank does."""
    ways: list[list[Op]] = []
    for rank in range(world):
        ways.append([])
        _follow(tree, Valuation(rank, world, local), ways[-1])
    outside = [way for way in ways if not any(op.name == JOIN for op in way)]
    if len(outside) == len(ways):
        return None
    return next((op for way in outside for op in way if waits(op) and op.name not in _OTHER), None)


def _follow(nodes: Tree, at: Valuation, met: list[Op]) -> str:
    """Note what a rank meets; gives the kind of the jump by which it leaves, "" at the end."""
    for node in nodes:
        left = ""
        if isinstance(node, Op):
            met.append(node)
        elif isinstance(node, Jump):
            return node.kind
        elif isinstance(node, Branch):
            left = _branch(node, at, met)
        elif isinstance(node, Call):
            left = _follow(node.body, at, met)
            left = left if left in _FAR else ""
        elif isinstance(node, Loop):
            left = _follow(node.body, at, met)
            left = left if left in _FAR or left == "return" else ""
        elif isinstance(node, Try):
            left = _follow(node.body, at, met) or _follow(node.orelse, at, met)
            left = _follow(node.final, at, met) or ("" if node.handlers and left == "raise" else left)
        elif isinstance(node, Yielded) or (isinstance(node, Region) and node.kind not in APART):
            left = _follow(node.body, at, met)
        if left:
            return left
    return ""


def _branch(node: Branch, at: Valuation, met: list[Op]) -> str:
    known = truth(node.condition, at)
    if known is not None:
        return _follow(node.then if known else node.orelse, at, met)
    first, second = _follow(node.then, at, met), _follow(node.orelse, at, met)
    return first and second
