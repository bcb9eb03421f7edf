"""Buffers of operations under way, in the text of one block: where a name of the buffer is touched.

Terminology: a name *stands for* the buffer where it was bound to it, or to a view of the whole of it. Keeping the
buffer, or a view of it, in a list, a tuple or an object touches no contents; nor does asking for its shape.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from ..interpreter.inflight import VIEWS
from ..source.walking import walk

_METADATA = frozenset({"shape", "dtype", "device", "size", "numel", "dim", "ndim", "stride", "is_cuda"})
_KEEPING = frozenset({"append", "appendleft", "add", "insert", "extend", "put"})


class Touched(NamedTuple):
    """A use of a buffer: where, and by which name."""

    node: ast.AST
    name: str


def first_use(buffer: str, handle: str, rest: list[ast.stmt], *, reads: bool) -> Touched | None:
    """Where some statements first write a buffer, or (``reads``) touch it at all, before the handle is next read."""
    names = {buffer}
    for statement in rest:
        if any(is_read(node, handle) for node in walk(statement)) or _ends(statement):
            return None
        for name in sorted(names):
            used = next(_uses(statement, name, reads=reads), None)
            if used is not None:
                return Touched(used, name)
        bound = {
            node.id
            for node in walk(statement)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        }
        seen = _seen_by(statement) if isinstance(statement, ast.Assign) else ""
        names = names - bound | (bound if seen in names and _binds_a_name(statement) else set())
        if not names:
            return None
    return None


def _binds_a_name(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Assign) and all(isinstance(one, ast.Name) for one in statement.targets)


def _seen_by(statement: ast.Assign) -> str:
    """The name of which a statement binds a view, or another name: ``y = x.view(-1)``."""
    value: ast.expr = statement.value
    while True:
        inside = _viewed(value) if isinstance(value, ast.Call) else None
        if inside is None:
            return value.id if isinstance(value, ast.Name) else ""
        value = inside


def _viewed(call: ast.Call) -> ast.expr | None:
    """What a call makes a view of the whole of; None for any other call."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in VIEWS:
        return None
    if base_of(call.func) == "torch":
        return call.args[0] if call.args else None
    return call.func.value


def _ends(statement: ast.stmt) -> bool:
    return isinstance(statement, (ast.Return, ast.Raise, ast.Break, ast.Continue))


def _uses(statement: ast.stmt, name: str, *, reads: bool) -> Iterator[ast.AST]:
    """Where a statement changes the tensor in place, or reads its contents."""
    harmless = set(_untouched(statement)) if reads else set()
    for node in walk(statement):
        if _writes(node, name) or (reads and is_read(node, name) and node not in harmless):
            yield node


def _untouched(statement: ast.stmt) -> Iterator[ast.AST]:
    """The expressions of a statement whose contents it does not touch."""
    for node in walk(statement):
        if isinstance(node, ast.Attribute) and node.attr in _METADATA:
            yield node.value
        elif isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            yield from _kept(node.value)
        elif (
            isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _KEEPING
        ):
            for argument in node.args:
                yield from _kept(argument)


def _kept(value: ast.expr) -> Iterator[ast.AST]:
    """What an expression holds without touching it: itself, what it is a view of, the items of lists and tuples."""
    yield value
    if isinstance(value, (ast.List, ast.Tuple)):
        for item in value.elts:
            yield from _kept(item)
    elif isinstance(value, ast.Dict):
        for item in value.values:
            yield from _kept(item)
    inside = _viewed(value) if isinstance(value, ast.Call) else None
    if inside is not None:
        yield from _kept(inside)


def _writes(node: ast.AST, name: str) -> bool:
    """``x[...] = ...``, ``x += ...``, ``x.fill_(...)``."""
    if isinstance(node, ast.Subscript):
        return isinstance(node.ctx, ast.Store) and base_of(node) == name
    if isinstance(node, ast.AugAssign):
        return base_of(node.target) == name
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        method = node.func.attr
        return base_of(node.func.value) == name and method.endswith("_") and not method.startswith("_")
    return False


def base_of(node: ast.expr) -> str:
    """The name that an attribute or an item is taken of in the end; "" where it is no name."""
    while isinstance(node, (ast.Subscript, ast.Attribute)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def is_read(node: ast.AST, name: str) -> bool:
    """Whether a node reads a name."""
    return isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)
