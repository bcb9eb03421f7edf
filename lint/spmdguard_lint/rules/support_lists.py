"""Lists of buffers on which operations are begun one by one, with their handles in another list.

Terminology: the *base* is the expression that is looped over (``grads``, ``self.buckets``); it is used too early by a
statement between the loop and the first statement that reads the list of handles.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import NamedTuple

from ..source.unparsing import unparse
from ..source.walking import walk
from ..traces.nodes import Op

Start = Callable[[ast.expr], Op | None]
_AROUND = frozenset({"enumerate", "list", "tuple", "reversed", "zip", "sorted"})
_READING = frozenset({"stack", "cat", "concat", "hstack", "vstack", "sum"})
_METADATA = frozenset({"shape", "dtype", "device", "size", "numel", "dim", "ndim", "stride", "is_cuda"})


class Begun(NamedTuple):
    """Operations begun on each item of a base; ``handles`` is the list of their handles."""

    op: Op
    handles: str
    base: str


def begun_on_each(statement: ast.stmt, started: Start) -> Begun | None:
    """What a loop or a comprehension begins on the items of a list."""
    if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.ListComp):
        name, made = statement.targets[0], statement.value
        if isinstance(name, ast.Name) and len(made.generators) == 1:
            loop = made.generators[0]
            return _begun(started(made.elt), made.elt, name.id, loop.target, loop.iter)
    if isinstance(statement, ast.For):
        for node in walk(statement):
            if _appends(node) and isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                handles = node.func.value
                if isinstance(handles, ast.Name):
                    item = node.args[0]
                    return _begun(started(item), item, handles.id, statement.target, statement.iter)
    return None


def _appends(node: ast.AST) -> bool:
    called = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and len(node.args) == 1
    return called and isinstance(node.func, ast.Attribute) and node.func.attr == "append"  # type: ignore[attr-defined]


def _begun(op: Op | None, call: ast.expr, handles: str, target: ast.expr, over: ast.expr) -> Begun | None:
    if op is None or not isinstance(call, ast.Call) or not call.args:
        return None
    buffer = call.args[0]
    if not isinstance(buffer, ast.Name) or buffer.id not in _names(target):
        return None
    base = base_of(over)
    return None if base is None else Begun(op, handles, base)


def base_of(over: ast.expr) -> str | None:
    """The list that a loop runs over, behind ``enumerate`` and the like."""
    while isinstance(over, ast.Call) and isinstance(over.func, ast.Name) and over.func.id in _AROUND:
        if len(over.args) != 1:
            return None
        over = over.args[0]
    return unparse(over) if isinstance(over, (ast.Name, ast.Attribute)) else None


def _names(target: ast.expr) -> set[str]:
    return {node.id for node in walk(target) if isinstance(node, ast.Name)}


def used_early(begun: Begun, rest: list[ast.stmt], started: Start) -> ast.AST | None:
    """The first use of the base before anything reads the handles."""
    for statement in rest:
        if any(isinstance(n, ast.Name) and n.id == begun.handles for n in walk(statement)):
            return None
        if isinstance(statement, (ast.Return, ast.Raise, ast.Break, ast.Continue)):
            return None
        if any(isinstance(n, ast.Call) and started(n) is not None for n in walk(statement)):
            return None
        if any(isinstance(n, ast.Attribute) and n.attr in ("wait", "synchronize") for n in walk(statement)):
            return None
        found = next(_uses(statement, begun.base), None)
        if found is not None:
            return found
        if any(_is_base(n, begun.base, ast.Store) for n in walk(statement)):
            return None
    return None


def _uses(statement: ast.stmt, base: str) -> Iterator[ast.AST]:
    """Where a statement touches the contents of the items of a list."""
    if isinstance(statement, (ast.For, ast.AsyncFor)) and base_of(statement.iter) == base:
        names = _names(statement.target)
        for part in statement.body:
            yield from _touches(part, names)
        return
    for node in walk(statement):
        item = isinstance(node, ast.Subscript) and _is_base(node.value, base, ast.Load)
        if item or (isinstance(node, ast.Call) and _reads_items(node, base)):
            yield node


def _reads_items(call: ast.Call, base: str) -> bool:
    """``torch.stack(base)`` and the like: library functions that read the tensors of a list."""
    known = isinstance(call.func, ast.Attribute) and call.func.attr in _READING
    return known and any(_is_base(arg, base, ast.Load) for arg in call.args)


def _touches(statement: ast.stmt, names: set[str]) -> Iterator[ast.AST]:
    harmless = {n.value for n in walk(statement) if isinstance(n, ast.Attribute) and n.attr in _METADATA}
    for node in walk(statement):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner = node.func.value
            if isinstance(owner, ast.Name) and owner.id in names and owner not in harmless:
                yield node
        elif isinstance(node, (ast.BinOp, ast.AugAssign)):
            sides = [node.left, node.right] if isinstance(node, ast.BinOp) else [node.target, node.value]
            if any(isinstance(s, ast.Name) and s.id in names for s in sides):
                yield node


def _is_base(node: ast.AST, base: str, context: type[ast.expr_context]) -> bool:
    if not isinstance(node, (ast.Name, ast.Attribute)) or not isinstance(node.ctx, context):
        return False
    return unparse(node) == base
