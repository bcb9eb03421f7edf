"""Branches whose arms call the same collectives, each with arguments of its own.

Terminology: two operations are *paired* where they stand at the same place in the two arms of a branch that ranks take
differently: they meet. What ranks hand to such a pair is a choice, made by the branch's condition. Only arms are
compared in which nothing else decides about operations. Cost: linear in the nodes of the arms.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from ..traces.divergence import group_key, variance
from ..traces.nodes import APART, Branch, Call, Node, Op, Region, Tree, every_node
from ..values.value import Value, choice, constant, external
from .support_trees import Path, Step

if TYPE_CHECKING:
    from collections.abc import Iterable

_REDUCING = frozenset({"all_reduce", "reduce", "reduce_scatter", "reduce_scatter_tensor"})
_SUM = external("torch.distributed.ReduceOp.SUM")
_ROOT = constant(0)
MAX_OPS = 12


class Pair(NamedTuple):
    """What two paired operations are together, where ranks come to it, and the one on the other ranks."""

    met: Op
    path: Path
    other: Op


def pairs(steps: Iterable[Step]) -> Iterator[Pair]:
    """The pairs of all branches among some steps."""
    for step in steps:
        if isinstance(step.node, Branch) and variance(step.node.condition.taint):
            branch = step.node
            first, second = _in_order(branch.then), _in_order(branch.orelse)
            if not first or not second or [_name(op) for op, _ in first] != [_name(op) for op, _ in second]:
                continue
            for (one, one_place), (other, other_place) in zip(first, second, strict=True):
                if other_place.place >= one_place.place:
                    yield Pair(_met(branch.condition, one, other, other, other_place), step.path, one)
                else:
                    yield Pair(_met(branch.condition, one, other, one, one_place), step.path, other)


def _name(op: Op) -> tuple[object, ...]:
    return (op.name, group_key(op))


def _in_order(tree: Tree) -> list[tuple[Op, Node]]:
    """The collectives of an arm, each with where to point for it; none where something in it may skip one."""
    found: list[tuple[Op, Node]] = []
    for node in tree:
        if isinstance(node, Op):
            if node.kind == "collective":
                found.append((node, node))
        elif isinstance(node, (Call, Region)):
            if isinstance(node, Region) and node.kind in APART:
                continue
            inner = _in_order(node.body)
            if not inner and any(isinstance(one, Op) for one in every_node(node.body)):
                return []
            found.extend((op, node if isinstance(node, Call) else at) for op, at in inner)
        elif any(isinstance(one, Op) for one in every_node([node])):
            return []
    return found[:MAX_OPS]


def _met(condition: Value, first: Op, second: Op, shown: Op, at: Node) -> Op:
    """One operation that is given what each side gives."""
    made = Op(at.place, shown.name, shown.kind, shown.group, shown.text, certainty=shown.certainty)
    if first.root is not None or second.root is not None:
        made.root = choice(condition, first.root or _ROOT, second.root or _ROOT)
    shared = [op.invariant or ((_SUM,) if op.name in _REDUCING else ()) for op in (first, second)]
    if len(shared[0]) == len(shared[1]):
        made.invariant = tuple(map(choice, (condition,) * len(shared[0]), *shared))
    if len(first.tensors) == len(second.tensors):
        made.tensors = tuple(
            choice(condition, one, other) for one, other in zip(first.tensors, second.tensors, strict=True)
        )
    if len(first.sizes) == len(second.sizes) == 1:
        made.sizes = (choice(condition, first.sizes[0], second.sizes[0]),)
    return made
