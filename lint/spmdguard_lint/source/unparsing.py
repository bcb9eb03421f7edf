"""The source form of expressions, as ``ast.unparse`` gives it; most are put together here, at a quarter of its cost.

``ast.unparse`` prepares for every statement and every precedence. Names, attributes, calls and subscripts are never in
brackets, and neither are operations on them alone; any other expression is left to it, alone or as a part.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Is: "is",
    ast.IsNot: "is not",
    ast.In: "in",
    ast.NotIn: "not in",
}
_BINARY: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
}
_ATOMS = (ast.Name, ast.Attribute, ast.Call, ast.Subscript)  # never in brackets, whatever stands around them
_OPERANDS = (*_ATOMS, ast.Constant)


def unparse(node: ast.AST) -> str:
    """The source form of a node."""
    writer = _WRITERS.get(node.__class__)
    text = writer(node) if writer is not None else None
    return ast.unparse(node) if text is None else text


def _name(node: ast.Name) -> str:
    return node.id


def _attribute(node: ast.Attribute) -> str | None:
    return f"{unparse(node.value)}.{node.attr}" if isinstance(node.value, _ATOMS) else None


def _call(node: ast.Call) -> str | None:
    if not isinstance(node.func, _ATOMS):
        return None
    given = [unparse(argument) for argument in node.args]
    for keyword in node.keywords:
        value = unparse(keyword.value)
        given.append(f"**{value}" if keyword.arg is None else f"{keyword.arg}={value}")
    return f"{unparse(node.func)}({', '.join(given)})"


def _subscript(node: ast.Subscript) -> str | None:
    if not isinstance(node.value, _ATOMS) or isinstance(node.slice, (ast.Tuple, ast.Slice)):
        return None
    return f"{unparse(node.value)}[{unparse(node.slice)}]"


def _compare(node: ast.Compare) -> str | None:
    if not all(isinstance(operand, _OPERANDS) for operand in (node.left, *node.comparators)):
        return None
    parts = [unparse(node.left)]
    for operator, operand in zip(node.ops, node.comparators, strict=True):
        parts += [COMPARISONS[operator.__class__], unparse(operand)]
    return " ".join(parts)


def _bool_op(node: ast.BoolOp) -> str | None:
    # a comparison gets brackets from the third operand on
    bare = (*_OPERANDS, ast.Compare) if len(node.values) == 2 else _OPERANDS
    if not all(isinstance(operand, bare) for operand in node.values):
        return None
    return (" and " if isinstance(node.op, ast.And) else " or ").join(map(unparse, node.values))


def _unary_op(node: ast.UnaryOp) -> str | None:
    if not isinstance(node.operand, _OPERANDS) or not isinstance(node.op, (ast.Not, ast.USub)):
        return None
    return ("not " if isinstance(node.op, ast.Not) else "-") + unparse(node.operand)


def _bin_op(node: ast.BinOp) -> str | None:
    operator = _BINARY.get(node.op.__class__)
    if operator is None or not (isinstance(node.left, _OPERANDS) and isinstance(node.right, _OPERANDS)):
        return None
    return f"{unparse(node.left)} {operator} {unparse(node.right)}"


def _list(node: ast.List) -> str:
    return f"[{', '.join(map(unparse, node.elts))}]"


def _tuple(node: ast.Tuple) -> str:
    return f"({', '.join(map(unparse, node.elts))}{',' if len(node.elts) == 1 else ''})"


def _constant(node: ast.Constant) -> str | None:
    kind = node.value.__class__
    if (kind is str and node.kind is None) or kind is bool or node.value is None or kind is int:
        return repr(node.value)
    return None


_WRITERS: dict[type, Callable[..., str | None]] = {
    ast.Name: _name,
    ast.Attribute: _attribute,
    ast.Call: _call,
    ast.Subscript: _subscript,
    ast.Compare: _compare,
    ast.BoolOp: _bool_op,
    ast.UnaryOp: _unary_op,
    ast.BinOp: _bin_op,
    ast.List: _list,
    ast.Tuple: _tuple,
    ast.Constant: _constant,
}
