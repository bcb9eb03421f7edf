"""Generators behind ``enumerate`` and ``zip``: the loop still runs the generator, item by item."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import NamedTuple

from ..values.value import Value, symbol
from .containers import element_of
from .contents import with_length
from .expressions import tuple_value
from .frame import Frame
from .lengths import trip_taint
from .protocols import iterator_of

_AROUND = frozenset({"enumerate", "zip", "iter"})


class Behind(NamedTuple):
    """A project generator, and what the loop's target gets for each value that it yields."""

    generator: Value
    item: Callable[[Value], Value]


def generator_behind(frame: Frame, iterated: Value, node: ast.AST) -> Behind | None:
    """The generator that a loop over a value runs; of several that are zipped, the first one."""
    if iterated.tag == "generator":
        return Behind(iterated, lambda value: value)
    if iterated.tag != "expr" or iterated.data[0] not in _AROUND or not iterated.data[1]:
        return None
    operator, operands = iterated.data
    if operator == "zip" and any(trip_taint(with_length(frame, one)) for one in operands):
        return None  # what is zipped with it may end it sooner
    for position, operand in enumerate(operands if operator == "zip" else operands[:1]):
        inner = generator_behind(frame, _iterator(frame, operand, node), node)
        if inner is not None:
            return Behind(inner.generator, _around(frame, operator, operands, position, inner, node))
    return None


def _iterator(frame: Frame, value: Value, node: ast.AST) -> Value:
    """A generator that the ``__iter__`` of an instance makes, or the value itself."""
    if value.tag != "obj":
        return value
    with frame.collecting():
        made = iterator_of(frame, value, node)
    return made if made.tag == "generator" else value


def _around(
    frame: Frame, operator: str, operands: tuple[Value, ...], position: int, inner: Behind, node: ast.AST
) -> Callable[[Value], Value]:
    def item(value: Value) -> Value:
        own = inner.item(value)
        if operator == "iter":
            return own
        if operator == "enumerate":
            return tuple_value([symbol(("index", frame.place(node))), own])
        others = [
            own if at == position else element_of(frame, operand, node) for at, operand in enumerate(operands)
        ]
        return tuple_value(others)

    return item
