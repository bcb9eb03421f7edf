"""Threads that their maker waits for before it does anything else: one thread is at work at a time.

``t = Thread(target=f); t.start(); t.join()``, ``pool.submit(f, x).result()``: what runs there runs in the order of the
text, as if it were called. Statements without calls may stand between.

Cost: one walk of the function around a thread that communicates.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from ..source.unparsing import unparse
from ..source.walking import walk
from ..traces.nodes import Op, Tree, every_node
from .frame import Frame

_WAITS = frozenset({"join", "result"})
_BLOCKS = ("body", "orelse", "finalbody")


def kind_of_thread(frame: Frame, nodes: Tree, node: ast.AST) -> str:
    """The kind of the region of what a thread does: one that runs apart, or one that is waited for at once.

    Only what communicates is read as a call: an error of a thread is heard by nobody, however soon it is joined.
    """
    communicates = any(isinstance(inner, Op) for inner in every_node(nodes))
    return "awaited" if communicates and _is_waited_for(frame, node) else "thread"


def _is_waited_for(frame: Frame, node: ast.AST) -> bool:
    """Whether the thread that a call makes, or starts, has ended before its maker goes on."""
    around = frame.module.tree if frame.function is None else frame.function.node
    for part in walk(around):
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.value is node:
            return _is_wait(part)
        for block in _blocks(part):
            for position, statement in enumerate(block):
                if getattr(statement, "value", None) is not None and _holds(statement, node):
                    return _ends_in(block[position:], node)
    return False


def _blocks(node: ast.AST) -> Iterator[Sequence[ast.stmt]]:
    for name in _BLOCKS:
        block = getattr(node, name, None)
        if isinstance(block, list):
            yield block


def _holds(statement: ast.stmt, node: ast.AST) -> bool:
    value: ast.expr = statement.value  # type: ignore[attr-defined]
    return value is node or _one_of_many(value) is node


def _one_of_many(value: ast.expr) -> ast.expr | None:
    """What a list is made of: ``[Thread(target=f, args=(x,)) for x in items]``."""
    return value.elt if isinstance(value, ast.ListComp) else None


def _ends_in(block: Sequence[ast.stmt], node: ast.AST) -> bool:
    """Whether a block that begins with the thread waits for it before it does anything else."""
    first, *rest = block
    told = _name(first.targets[0]) if isinstance(first, ast.Assign) else ""
    if isinstance(first, ast.Expr) and isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        told = _name(node.func.value) if node.func.attr == "start" else ""
    if isinstance(first, ast.Assign) and first.value is not node:
        loop = next(iter(_with_calls(rest)), None)
        if not isinstance(loop, ast.For) or _name(loop.iter) != told:
            return False
        told, rest = _name(loop.target), loop.body
    for statement in _with_calls(rest) if told else ():
        call = statement.value if isinstance(statement, (ast.Expr, ast.Assign, ast.Return)) else None
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
            return False
        if _name(call.func.value) != told:
            return False
        if call.func.attr != "start":
            return _is_wait(call)
    return False


def _with_calls(block: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    return (statement for statement in block if any(isinstance(part, ast.Call) for part in walk(statement)))


def _is_wait(call: ast.Call) -> bool:
    """Whether a call waits for as long as it takes."""
    return (
        isinstance(call.func, ast.Attribute)
        and call.func.attr in _WAITS
        and not call.args
        and not call.keywords
    )


def _name(node: ast.expr) -> str:
    return unparse(node) if isinstance(node, (ast.Name, ast.Attribute)) else ""
