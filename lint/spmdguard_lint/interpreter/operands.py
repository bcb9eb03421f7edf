"""What an operation is given: whether a list is there at all, and whether its entries are one and the same tensor."""

from __future__ import annotations

import ast

from ..traces.nodes import Event
from ..values.value import FALSE, TRUE, Value, choice, is_const, symbol
from .contents import is_container, structure
from .frame import Frame

ALIASED = "aliased-output"


def is_given(frame: Frame, value: Value) -> Value:
    """Whether an argument is a list with entries, as a condition; opaque where that is not known."""
    if is_const(value):
        return TRUE if value.data[0] else FALSE
    if value.tag == "ite":
        condition, then, orelse = value.data
        return choice(condition, is_given(frame, then), is_given(frame, orelse))
    if value.tag == "tuple":
        return TRUE if value.data else FALSE
    if is_container(frame, value):
        from .containers import fields_of

        if fields_of(frame, value) and not structure(frame, value):
            return TRUE
    return symbol(("given", value.key))


def mark_aliases(frame: Frame, outputs: list[Value], node: ast.AST) -> None:
    """Mark a call whose list of outputs holds one tensor several times."""
    from .expressions import text_of

    for value in outputs:
        if is_container(frame, value) and _is_one_tensor(frame, value):
            frame.out.append(Event(frame.place(node), ALIASED, text_of(node)))
            return


def _is_one_tensor(frame: Frame, value: Value) -> bool:
    """``[x] * n`` as it was made, or ``[x, x]``; numbers, texts and None are no tensors."""
    from .containers import fields_of

    fields = fields_of(frame, value)
    items = [item for item in fields.values() if item.tag in ("sym", "expr")]
    if len(items) != len(fields):
        return False
    if frame.machine.repeated.get(value.data[0]) is fields:
        return True
    return len({id(item) for item in items}) < len(items)
