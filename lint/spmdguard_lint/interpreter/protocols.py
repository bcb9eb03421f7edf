"""Operators and built-ins on instances of the project's classes: ``a + b``, ``a == b``, ``a[i]``, ``len(a)``, loops."""

from __future__ import annotations

import ast

from ..traces.nodes import Handler, Try
from ..values.value import NO_TAINT, Taints, Value, negate, symbol, union
from .frame import Frame, Watch
from .nearby import iterated_instance

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

_END = "StopIteration"


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


_TEXT = ("__str__", "__repr__")
_BUILT_IN = {
    "len": ("__len__",),
    "iter": ("__iter__",),
    "str": _TEXT,
    "repr": ("__repr__",),
    "format": ("__format__", *_TEXT),
    "int": ("__int__", "__index__"),
    "float": ("__float__", "__index__"),
    "abs": ("__abs__",),
    "hash": ("__hash__",),
    "round": ("__round__",),
}
_CONVERSIONS = {ord("s"): _TEXT, ord("r"): ("__repr__",), ord("a"): ("__repr__",)}


def built_in(frame: Frame, name: str, args: list[Value], node: ast.AST) -> Value | None:
    """What a built-in function gives that asks its argument's class; ``print`` asks each argument for its text."""
    if name == "print":
        for value in args:
            _first_of(frame, value, _TEXT, node)
    names = _BUILT_IN.get(name, ())
    return _first_of(frame, args[0], names, node) if args else None


def formatted(frame: Frame, value: Value, conversion: int, node: ast.AST) -> Value:
    """A value as it stands in an f-string or a text that is formatted; ``conversion`` as in ``ast``."""
    made = _first_of(frame, value, _CONVERSIONS.get(conversion, _BUILT_IN["format"]), node)
    return value if made is None else made


def _first_of(frame: Frame, value: Value, names: tuple[str, ...], node: ast.AST) -> Value | None:
    if value.tag != "obj":
        return None
    for name in names:
        spec = [symbol(("spec", frame.place(node)))] if name == "__format__" else []
        made = special(frame, value, name, spec, node)
        if made is not None:
            return made
    return None


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
    value = iterated_instance(frame, value, node)
    made = special(frame, value, "__iter__", [], node)
    return value if made is None else made


def next_of(frame: Frame, value: Value, node: ast.AST) -> tuple[Value | None, Taints]:
    """What an instance's ``__next__`` gives, and why ranks come to its end in another round.

    Where it does not say when it ends, that is for any reason for which its fields differ.
    """
    if value.tag != "obj" or frame.machine.objects.info(value).kind != "instance":
        return None, NO_TAINT
    watch = Watch(frame.live.copy(), len(frame.path), [(_END,)])
    frame.watchers.append(watch)
    with frame.collecting() as nodes:
        made = special(frame, value, "__next__", [], node)
    frame.watchers.pop()
    ends: list[Taints] = []
    for one in watch.raises:
        if watch.catches(one.name):
            ends.append(union(one.taint, one.value))
        else:
            frame.hand_on(one)
    if not ends:
        frame.out.extend(nodes)
        return made, fields_taint(frame, value)
    place = frame.place(node)
    frame.out.append(Try(place, nodes, [Handler(place, (_END,), [], _END)], [], []))
    return made, union(*ends)


def fields_taint(frame: Frame, value: Value) -> Taints:
    """Why the fields of an instance may differ between ranks."""
    fields = frame.live.heap.fields(value.data[0])
    return union(NO_TAINT, *(union(field.taint, field.trip or NO_TAINT) for field in fields.values()))
