"""Operators and built-ins on instances of the project's classes: ``a + b``, ``a == b``, ``a[i]``, ``len(a)``, loops."""

from __future__ import annotations

import ast

from ..values.value import NO_TAINT, Taints, Value, negate, union
from .frame import Frame

BINARY = {
    "+": "__add__",
    "-": "__sub__",
    "*": "__mul__",
    "/": "__truediv__",
    "//": "__floordiv__",
    "%": "__mod__",
    "@": "__matmul__",
    "&": "__and__",
    "|": "__or__",
    "^": "__xor__",
}
COMPARED = {
    "==": "__eq__",
    "!=": "__ne__",
    "<": "__lt__",
    "<=": "__le__",
    ">": "__gt__",
    ">=": "__ge__",
}


def special(frame: Frame, value: Value, name: str, args: list[Value], node: ast.AST) -> Value | None:
    """What an instance's special method gives; None where its class has none."""
    if value.tag != "obj":
        return None
    cls = frame.machine.objects.info(value).cls
    method = cls.find_method(name) if cls is not None else None
    if method is None or frame.state is None:
        return None
    from .attributes import bound_method
    from .calls import call_value

    return call_value(frame, bound_method(frame, method, value), args, {}, node)


def compared(frame: Frame, operator: str, left: Value, right: Value, node: ast.AST) -> Value | None:
    """A comparison that an instance's class defines."""
    if operator in ("in", "not in"):
        found = special(frame, right, "__contains__", [left], node)
        return negate(found) if found is not None and operator == "not in" else found
    name = COMPARED.get(operator)
    if name is None:
        return None
    found = special(frame, left, name, [right], node)
    if found is None and operator == "!=":
        found = special(frame, left, "__eq__", [right], node)
        return None if found is None else negate(found)
    return found


def truth_of(frame: Frame, value: Value, node: ast.AST) -> Value | None:
    """The truth of an instance, by its ``__bool__`` or its length."""
    found = special(frame, value, "__bool__", [], node)
    return special(frame, value, "__len__", [], node) if found is None else found


def iterator_of(frame: Frame, value: Value, node: ast.AST) -> Value:
    """What a loop over a value runs over: a generator that its ``__iter__`` makes, or the value itself."""
    made = special(frame, value, "__iter__", [], node)
    return value if made is None else made


def fields_taint(frame: Frame, value: Value) -> Taints:
    """Why the fields of an instance may differ between ranks."""
    fields = frame.live.heap.fields(value.data[0])
    return union(NO_TAINT, *(union(field.taint, field.trip or NO_TAINT) for field in fields.values()))
