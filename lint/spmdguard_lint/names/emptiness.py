"""Tests that ask whether there is anything in a tensor: ``x.shape[0] == 0``, ``len(x) > 0``, ``not x.size(0)``."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..source.walking import walk
from .dotted import called_name

_SIZES = frozenset({"size", "numel", "nelement"})
_LENGTHS = frozenset({"len", *_SIZES})


def asked_for_emptiness(test: ast.expr, counting: frozenset[str] = _LENGTHS) -> Iterator[ast.expr]:
    """What a test compares with nothing at all: the tensors and sequences whose size is zero or not."""
    for node in walk(test):
        if (
            isinstance(node, ast.Compare)
            and len(node.ops) == 1
            and _is_nothing(node.ops[0], node.comparators[0])
        ):
            yield from _counted(node.left, counting)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield from _counted(node.operand, counting)


def asked_for_rows(test: ast.expr) -> Iterator[ast.expr]:
    """The same for tensors alone, by one of their dimensions or their number of elements."""
    return asked_for_emptiness(test, _SIZES)


def _is_nothing(operator: ast.cmpop, other: ast.expr) -> bool:
    if not isinstance(other, ast.Constant) or isinstance(other.value, bool):
        return False
    if other.value == 0:
        return isinstance(operator, (ast.Eq, ast.NotEq, ast.Gt, ast.LtE))
    return other.value == 1 and isinstance(operator, (ast.Lt, ast.GtE))


def _counted(value: ast.expr, counting: frozenset[str]) -> Iterator[ast.expr]:
    """``x`` of ``x.shape[0]``, ``x.size(0)``, ``x.numel()`` and ``len(x)``."""
    if isinstance(value, ast.Subscript):
        if isinstance(value.value, ast.Attribute) and value.value.attr == "shape":
            yield value.value.value
    elif isinstance(value, ast.Call) and called_name(value) in counting:
        if isinstance(value.func, ast.Attribute):
            yield value.func.value
        else:
            yield from value.args[:1]
