"""Groups that a helper makes at its first call alone: whoever calls it later finds the group made."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..source.unparsing import unparse
from ..traces.nodes import Op, Tree, every_node


def note_made_once(node: ast.If, nodes: Tree) -> None:
    """Mark the groups made in ``if G is None: G = new_group()`` and its like, of which ``nodes`` is the trace."""
    if nodes and _asks_whether_made(node):
        for op in every_node(nodes):
            if isinstance(op, Op) and op.name == "new_group":
                op.once = True


def _asks_whether_made(node: ast.If) -> bool:
    """Whether the test asks whether what the body assigns is there yet."""
    parts = node.test.values if isinstance(node.test, ast.BoolOp) else [node.test]
    asked = {text for part in parts for text in _asked(part)}
    return bool(asked) and any(
        unparse(target) in asked
        for statement in node.body
        if isinstance(statement, ast.Assign)
        for target in statement.targets
    )


def _asked(test: ast.expr) -> Iterator[str]:
    """What ``x is None``, ``key not in x``, ``not hasattr(x, "name")`` or ``not x`` say is not there."""
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        other = test.comparators[0]
        if isinstance(test.ops[0], ast.Is) and isinstance(other, ast.Constant) and other.value is None:
            yield unparse(test.left)
        elif isinstance(test.ops[0], ast.NotIn):
            yield f"{unparse(other)}[{unparse(test.left)}]"
    elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = test.operand
        if isinstance(inner, (ast.Name, ast.Attribute)):
            yield unparse(inner)
        elif isinstance(inner, ast.Call) and len(inner.args) == 2 and unparse(inner.func) == "hasattr":
            name = inner.args[1]
            if isinstance(name, ast.Constant) and isinstance(name.value, str):
                yield f"{unparse(inner.args[0])}.{name.value}"
