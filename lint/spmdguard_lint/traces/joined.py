"""Failures of which all ranks have been told: where one rank raises its own error, the others raise as well.

Terminology: an operation *tells* where what a rank gives it says whether an exception was caught there. A raise that
one rank makes alone is *joined* where the others raise before they wait for anybody: at once, or where a condition on
what a telling operation gave leads them to a raise of their own.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..values.value import Place, Value, parts_of
from .judged import variance
from .nodes import Branch, Jump, Op, Tree, every_node

_WRITTEN = frozenset({"contents", "filled", "length"})  # lists, whose labels name no place
_RAISES = frozenset({"raise", "exit"})


def is_joined(nodes: Tree, index: int) -> bool:
    """Whether the ranks without an error, which do not raise in ``nodes[index]``, raise before any operation."""
    branch = nodes[index]
    if not isinstance(branch, Branch) or _raises(branch.then) is _raises(branch.orelse):
        return False
    raising, others = (branch.then, branch.orelse) if _raises(branch.then) else (branch.orelse, branch.then)
    if not any(taint.kind == "exception" for taint in branch.condition.taint) or _operates(raising):
        return False
    met = {op.place for op in _telling(nodes[:index])}
    for node in [*others, *nodes[index + 1 :]]:
        if isinstance(node, Jump):
            return node.kind in _RAISES
        if isinstance(node, Branch) and joins(node, met):
            return True
        if _operates([node]):
            return False
    return False


def joins(node: Branch, met: set[Place]) -> bool:
    """Whether all ranks raise in an arm of a branch, if what one of the operations at these places gave says so."""
    then, orelse = _raises(node.then), _raises(node.orelse)
    if not (then or orelse) or variance(node.condition.taint) or not met:
        return then and orelse
    return any(comes_from(part, met) for part in parts_of(node.condition))


def comes_from(value: Value, places: set[Place]) -> bool:
    """Whether a value is what one of the operations at these places gave, or stands in a list."""
    label = value.data[0] if value.tag == "sym" else None
    if not isinstance(label, tuple) or not label:
        return False
    return label[0] in _WRITTEN or any(item in places for item in label)


def _telling(nodes: Tree) -> Iterator[Op]:
    return (node for node in every_node(nodes) if isinstance(node, Op) and node.tells)


def _operates(nodes: Tree) -> bool:
    return any(isinstance(node, Op) for node in every_node(nodes))


def _raises(arm: Tree) -> bool:
    return bool(arm) and isinstance(arm[-1], Jump) and arm[-1].kind in _RAISES
