"""Loops that stop at a number on which all ranks have agreed: the least of their own lengths.

A loop over this rank's own items runs as often everywhere when it ends after ``n`` rounds, and ``n`` was reduced
with MIN, or found in what was gathered from all ranks or told by one. Where it goes on, but communicates in the first
``n`` rounds alone, the further rounds are a rank's own matter. Whether ``n`` is really within every rank's
length cannot be seen; it is taken for that, since there is no other reason to exchange it.
"""

from __future__ import annotations

from collections.abc import Hashable

from ..facts import lookup as facts
from ..traces.nodes import Branch, Jump, Op, Tree, every_node
from ..values.value import Place, Value, parts_of
from .frame import Frame

_BELOW = {"<": True, "<=": True, ">": False, ">=": False}


def is_limited(frame: Frame, iterated: Value, body: Tree) -> bool:
    """Whether a loop over a value ends at an agreed number of rounds, at the latest."""
    if iterated.tag == "expr":
        operator, operands = iterated.data
        if operator in ("call:itertools.islice", "slice", "getitem"):
            return any(_is_agreed(frame, operand) for operand in operands[1:])
        if operator in ("zip", "enumerate", "iter", "list") and any(
            _is_agreed_range(frame, operand) or is_limited(frame, operand, []) for operand in operands
        ):
            return True
    return any(
        isinstance(node, Branch) and _breaks(node) and _counts_up_to_agreed(frame, node.condition)
        for node in body
    )


def is_quiet_behind(frame: Frame, body: Tree, place: Place) -> bool:
    """Whether a loop, which stands at a place, communicates in its first rounds alone, an agreed number of them."""
    return any(isinstance(one, Op) for one in every_node(body)) and _is_quiet(frame, body, ("index", place))


def _is_quiet(frame: Frame, nodes: Tree, index: Hashable) -> bool:
    """Whether nothing in a tree communicates in the rounds behind an agreed number."""
    for node in nodes:
        if isinstance(node, Op):
            return False
        if not isinstance(node, Branch):
            if not all(_is_quiet(frame, child, index) for child in node.subtrees()):
                return False
            continue
        behind = [
            arm
            for arm, holds in ((node.then, True), (node.orelse, False))
            if not _is_before(frame, node.condition, holds, index)
        ]
        if not all(_is_quiet(frame, arm, index) for arm in behind):
            return False
        if behind and all(_leaves_round(arm) for arm in behind):
            return True
    return True


def _is_before(frame: Frame, condition: Value, holds: bool, index: Hashable) -> bool:
    """Whether a condition holds, or fails, in rounds before the agreed number alone."""
    if condition.tag != "expr":
        return False
    operator, operands = condition.data
    if operator == "not":
        return _is_before(frame, operands[0], not holds, index)
    if operator in ("and", "or"):
        return holds is (operator == "and") and any(
            _is_before(frame, operand, holds, index) for operand in operands
        )
    if len(operands) != 2 or operator not in _BELOW:
        return False
    position, limit = operands if _BELOW[operator] is holds else operands[::-1]
    return (
        position.tag == "sym"
        and position.data[0] == index
        and not position.taint
        and _is_agreed(frame, limit)
    )


def _leaves_round(arm: Tree) -> bool:
    return bool(arm) and isinstance(arm[-1], Jump) and arm[-1].kind in ("continue", "break")


def _is_agreed_range(frame: Frame, value: Value) -> bool:
    return value.tag == "expr" and value.data[0] == "range" and _is_agreed(frame, value)


def _counts_up_to_agreed(frame: Frame, condition: Value) -> bool:
    """``i >= steps``: the position in the loop is compared with the agreed number."""
    if condition.tag != "expr" or condition.data[0] not in (">=", ">", "==", "<=", "<"):
        return False
    left, right = condition.data[1]
    return any(
        one.tag == "sym"
        and isinstance(one.data[0], tuple)
        and one.data[0][:1] == ("index",)
        and _is_agreed(frame, other)
        for one, other in ((left, right), (right, left))
    )


def _breaks(node: Branch) -> bool:
    return any(isinstance(one, Jump) and one.kind == "break" for one in (*node.then, *node.orelse))


def _is_agreed(frame: Frame, value: Value) -> bool:
    """Whether a value that is the same on every rank is made of what a collective has told."""
    return any(
        part.tag == "sym" and not part.taint and _is_told(frame, part.data[0]) for part in parts_of(value)
    )


def _is_told(frame: Frame, label: object) -> bool:
    """Whether a symbol stands for what a collective wrote or returned, other than a sum or the greatest."""
    if not isinstance(label, tuple) or len(label) < 2:
        return False
    if label[0] in ("filled", "contents"):
        return label[1] in frame.machine.told
    fact = facts.function(label[0]) if isinstance(label[0], str) else None
    return fact is not None and fact.op is not None and fact.result == "uniform"


def note_told(frame: Frame, args: list[Value], kwargs: dict[str, Value], place: object, op_name: str) -> None:
    """Remember a collective whose result may serve as a limit."""
    operators = [v.data[0] for v in (*args, *kwargs.values()) if v.tag == "ext"]
    named = [one.rpartition(".")[2] for one in operators if "ReduceOp" in one]
    reduces = "reduce" in op_name
    if (reduces and named == ["MIN"]) or (not reduces and not named):
        frame.machine.told.add(place)
        frame.machine.told.update(v.data[0] for v in (*args, *kwargs.values()) if v.tag == "obj")
