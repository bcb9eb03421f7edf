"""Branches that ask for the size of what they broadcast: such a branch is the same on the root and on those that hear.

A broadcast needs tensors of the same shape on both sides. Where the root leaves it out for an empty tensor, and the
others leave it out for an empty buffer, both ask the same question of values that no reading can compare.
"""

from __future__ import annotations

from collections.abc import Hashable
from itertools import pairwise
from typing import TYPE_CHECKING

from ..values.evaluate import rank_dependent
from ..values.value import parts_of
from .nodes import Branch, Op, Tree, every_node

if TYPE_CHECKING:
    from ..values.value import Value
    from .judged import Candidate

_SIZES = frozenset({"call:numel", "call:nelement", "call:size", "len"})
_ASKING = _SIZES | {"attr:shape"}
_TESTS = frozenset({"==", "!=", "<", "<=", ">", ">=", "not", "bool"})


def question(node: Branch) -> Hashable:
    """What a branch around a single broadcast asks of the size of its tensor; None where it asks something else."""
    condition = node.condition
    if not any(part.tag == "expr" and part.data[0] in _ASKING for part in parts_of(condition)):
        return None
    ops = [inner for arm in (node.then, node.orelse) for inner in every_node(arm) if isinstance(inner, Op)]
    if len(ops) != 1 or ops[0].name != "broadcast" or ops[0].sent is None:
        return None
    return _of_size(condition, ops[0].sent)


def _of_size(value: Value, tensor: Value) -> Hashable:
    """A condition with the tensor left open; None where it asks anything but the tensor's size."""
    if value.tag == "const":
        return ("const", repr(value.data[0]))
    if value.tag != "expr":
        return None
    operator, operands = value.data
    if operator == "getitem" and operands[0].tag == "expr" and operands[0].data[0] == "attr:shape":
        return (operator, operands[1].key) if operands[0].data[1][0].key == tensor.key else None
    if operator in _SIZES:
        return (operator, *(one.key for one in operands[1:])) if operands[0].key == tensor.key else None
    if operator not in _TESTS:
        return None
    parts = tuple(_of_size(one, tensor) for one in operands)
    return None if None in parts else (operator, *parts)


def is_followed(candidate: Candidate, node: Branch) -> bool:
    """Whether a branch stands in an arm of the root, and those that hear ask the same of what they receive."""
    asked = question(node)
    if asked is None:
        return False
    for (inner, _), (outer, _) in pairwise(candidate.chain):
        for position, around in enumerate(outer):
            if not isinstance(around, Branch) or not rank_dependent(around.condition):
                continue
            if inner is around.then or inner is around.orelse:
                other = around.orelse if inner is around.then else around.then
                if _asks([*other, *outer[position + 1 :]], asked):
                    return True
    return False


def _asks(nodes: Tree, asked: Hashable) -> bool:
    return any(isinstance(one, Branch) and question(one) == asked for one in every_node(nodes))
