"""What stands in a container now: its structure (how many items, which keys) and its contents.

Terminology: a *version* is a value on the heap beside a container, another one after each change of its
structure. Where only some ranks change a container, the join of the branch makes the version rank-varying, and
with it everything that asks for the structure: ``if items``, ``len(items)``, ``key in items``, a loop.
Conditions on a container are keyed by its version, so that two tests with a change between them are two.
"""

from __future__ import annotations

import ast
from collections.abc import Hashable

from ..values.value import (
    FALSE,
    NO_TAINT,
    TRUE,
    Taints,
    Value,
    choice,
    expression,
    retaint,
    symbol,
    union,
    without_order,
)
from .frame import Frame
from .protocols import truth_of
from .stages import of_stage
from .state import MADE, VERSION

MAX_NESTING = 3
MAX_LISTED = 6
REST = "*"


def is_container(frame: Frame, value: Value) -> bool:
    """Whether a value is a list, dict or set of the heap."""
    return value.tag == "obj" and frame.machine.objects.info(value).kind != "instance"


def version(frame: Frame, value: Value) -> Value:
    """The version of a container at this moment."""
    fields = frame.live.heap.get((VERSION, value.data[0]))
    return MADE if fields is None else fields["at"]


def touch(frame: Frame, value: Value, node: ast.AST, *, emptied: bool = False) -> None:
    """A container has another structure from here on; ``emptied`` says that items were taken out."""
    if frame.state is not None:
        before = version(frame, value)
        now = symbol(("changed", frame.place(node), before.key), before.taint)
        known = frame.state.heap.fields((VERSION, value.data[0])).get("emptied", FALSE)
        frame.state.heap[(VERSION, value.data[0])] = {"at": now, "emptied": TRUE if emptied else known}


def length_of_copy(frame: Frame, value: Value) -> Taints | None:
    """Why a copy of a container may have another length on each rank.

    Dicts and sets that ranks have filled more or less often mostly have the same keys; those that some have emptied do
    not.
    """
    if frame.machine.objects.info(value).kind == "list":
        return with_length(frame, value).trip
    emptied = frame.live.heap.fields((VERSION, value.data[0])).get("emptied", FALSE)
    if emptied.key == FALSE.key or not emptied.taint:
        return value.trip
    return union(value.trip or NO_TAINT, emptied.taint)


def structure(frame: Frame, value: Value) -> Taints:
    """Why a container may have another structure on each rank."""
    return union(without_order(value.taint), value.trip or NO_TAINT, version(frame, value).taint)


def with_length(frame: Frame, value: Value) -> Value:
    """A container with everything by which the number of its items may vary."""
    if not is_container(frame, value):
        return value
    trip = union(value.trip or NO_TAINT, version(frame, value).taint)
    return value if trip == (value.trip or NO_TAINT) else retaint(value, value.taint, trip)


def asked(frame: Frame, value: Value, question: str) -> Value:
    """The answer to a question about a container's structure."""
    why = union(structure(frame, value), of_stage(frame, value))
    return symbol((question, value.data[0], version(frame, value).key), why)


def condition_of(frame: Frame, value: Value, node: ast.AST) -> Value:
    """A value as a condition: a container stands for the question whether it is empty."""
    if value.tag == "obj":
        if is_container(frame, value):
            return asked(frame, value, "filled")
        own = truth_of(frame, value, node)
        return value if own is None else own
    if value.tag == "ite":
        condition, then, orelse = value.data
        first, second = condition_of(frame, then, node), condition_of(frame, orelse, node)
        return value if first is then and second is orelse else choice(condition, first, second)
    if value.tag == "expr" and value.data[0] in ("and", "or", "not"):
        operands = [condition_of(frame, operand, node) for operand in value.data[1]]
        if all(new is old for new, old in zip(operands, value.data[1], strict=True)):
            return value
        return expression(value.data[0], operands, extra=value.taint)
    if value.trip and value.tag == "expr":
        return retaint(value, union(value.taint, value.trip), value.trip)
    return value


def whole(frame: Frame, value: Value, depth: int = 0) -> Value:
    """A value with its contents, as something that is computed from all of them sees it."""
    if value.tag == "tuple":
        items = [whole(frame, item, depth + 1) for item in value.data]
        if all(new is old for new, old in zip(items, value.data, strict=True)):
            return value
        from .expressions import tuple_value

        return tuple_value(items)
    if value.tag == "ite":
        condition, then, orelse = value.data
        first, second = whole(frame, then, depth), whole(frame, orelse, depth)
        return value if first is then and second is orelse else choice(condition, first, second)
    if not is_container(frame, value):
        return value
    return _opaque(frame, value, depth)


def _opaque(frame: Frame, value: Value, depth: int) -> Value:
    from .containers import fields_of

    fields = fields_of(frame, value)
    parts: dict[str, Value] = {}
    if depth < MAX_NESTING:
        parts = {name: whole(frame, fields[name], depth + 1) for name in sorted(fields)}
    taint = union(structure(frame, value), *(part.taint for part in parts.values()))
    taint = frozenset(t for t in taint if t.kind != "order")
    key: tuple[Hashable, ...] = tuple((name, part.key) for name, part in parts.items())
    label = ("contents", value.data[0], version(frame, value).key, key)
    return symbol(label, taint, value.trip)


def as_chosen(frame: Frame, value: Value) -> Value:
    """One of several lists as the tuple of its items, so that it is known for a rank how many there are."""
    if value.tag == "ite":
        condition, then, orelse = value.data
        first, second = as_chosen(frame, then), as_chosen(frame, orelse)
        return value if first is then and second is orelse else choice(condition, first, second)
    if is_container(frame, value) and frame.machine.objects.info(value).kind == "list":
        return items_now(frame, value)
    return value


def items_now(frame: Frame, value: Value) -> Value:
    """A list whose items are all known, as a tuple of them; other values with their contents."""
    if is_container(frame, value) and frame.machine.objects.info(value).kind == "list":
        from .containers import fields_of
        from .expressions import tuple_value

        fields = fields_of(frame, value)
        names = [str(position) for position in range(len(fields))]
        if not structure(frame, value) and all(name in fields for name in names):
            return tuple_value([whole(frame, fields[name], 1) for name in names])
    return whole(frame, value)


def listed(frame: Frame, value: Value) -> Value:
    """A short list of constants as a tuple of them; other values with their contents."""
    from .containers import fields_of

    if value.tag == "ite":
        condition, then, orelse = value.data
        first, second = listed(frame, then), listed(frame, orelse)
        return value if first is then and second is orelse else choice(condition, first, second)
    if is_container(frame, value) and len(fields_of(frame, value)) <= MAX_LISTED:
        items = items_now(frame, value)
        if items.tag == "tuple" and all(item.tag == "const" for item in items.data):
            return items
    return whole(frame, value)
