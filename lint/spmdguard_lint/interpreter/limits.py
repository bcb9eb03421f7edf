"""Loops that stop at a number on which all ranks have agreed: the least of their own lengths.

A loop over this rank's own items runs as often everywhere when it ends after ``n`` rounds, and ``n`` was reduced
with MIN, or found in what was gathered from all ranks or told by one. Whether ``n`` is really within every rank's
length cannot be seen; it is taken for that, since there is no other reason to exchange it.
"""

from __future__ import annotations

from ..facts import lookup as facts
from ..traces.nodes import Branch, Jump, Tree
from ..values.value import Value, parts_of
from .frame import Frame


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
