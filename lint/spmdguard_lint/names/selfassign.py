"""What the methods of a class assign on their receiver.

A value that is only part of an expression (``self.a, self.b = f()``, a loop or ``with`` target, ``+=``)
has ``value`` None and ``source`` and ``index`` say where it comes from.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .scopes import own_expressions, statements

if TYPE_CHECKING:
    from .classes import ClassInfo
    from .functions import FunctionInfo


@dataclass(frozen=True, slots=True)
class SelfAssignment:
    """One ``self.name = value``.

    ``node`` is the statement (or walrus); ``source`` the expression unpacked, iterated, entered or added;
    ``index`` the place in the unpacked value; ``annotation`` that of ``self.name: T = value``.
    """

    function: FunctionInfo
    value: ast.expr | None
    node: ast.AST
    source: ast.expr | None = None
    index: int | None = None
    annotation: ast.expr | None = None


def self_assignments(cls: ClassInfo) -> dict[str, list[SelfAssignment]]:
    """Collect them over all functions of the class body, closures of methods included."""
    found: dict[str, list[SelfAssignment]] = {}
    for method in cls.functions:
        receiver = method.self_name
        if receiver is None or not method.may_assign:
            continue
        pending = [method]
        while pending:
            function = pending.pop()
            if function is not method and receiver in {p.name for p in function.params}:
                continue
            _scan(function, receiver, found)
            pending.extend(reversed(function.nested_functions.values()))
    return found


def _scan(function: FunctionInfo, receiver: str, found: dict[str, list[SelfAssignment]]) -> None:
    for node in statements(function.body):
        for name, assignment in _assigned(function, receiver, node):
            found.setdefault(name, []).append(assignment)


def assigns_on(function: FunctionInfo, receiver: str) -> bool:
    """Whether the body of a function, which must be there, assigns ``receiver.name``; no function inside is entered."""
    body = [] if isinstance(function.header, ast.Lambda) else function.header.body
    return any(True for node in statements(body) for _ in _assigned(function, receiver, node))


def _assigned(function: FunctionInfo, receiver: str, node: ast.AST) -> Iterator[tuple[str, SelfAssignment]]:
    if isinstance(node, ast.Assign):
        for target in node.targets:
            yield from _targets(function, receiver, node, target, node.value)
    elif isinstance(node, ast.AnnAssign):
        name = _attribute(node.target, receiver)
        if name:
            yield name, SelfAssignment(function, node.value, node, annotation=node.annotation)
    elif isinstance(node, ast.AugAssign):
        name = _attribute(node.target, receiver)
        if name:
            yield name, SelfAssignment(function, None, node, source=node.value)
    elif isinstance(node, (ast.For, ast.AsyncFor)):
        yield from _parts(function, receiver, node, node.target, node.iter)
    elif isinstance(node, ast.With):
        for item in node.items:
            if item.optional_vars is not None:
                yield from _parts(function, receiver, node, item.optional_vars, item.context_expr)


def _targets(
    function: FunctionInfo, receiver: str, node: ast.AST, target: ast.expr, value: ast.expr
) -> Iterator[tuple[str, SelfAssignment]]:
    name = _attribute(target, receiver)
    if name:
        yield name, SelfAssignment(function, value, node)
    elif isinstance(target, (ast.Tuple, ast.List)):
        paired = isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts)
        starred = any(isinstance(e, ast.Starred) for e in target.elts)
        if paired and not starred and isinstance(value, (ast.Tuple, ast.List)):
            for one, its_value in zip(target.elts, value.elts, strict=True):
                yield from _targets(function, receiver, node, one, its_value)
        else:
            yield from _parts(function, receiver, node, target, value)


def _parts(
    function: FunctionInfo, receiver: str, node: ast.AST, target: ast.expr, source: ast.expr
) -> Iterator[tuple[str, SelfAssignment]]:
    """Targets that receive part of ``source``; an index is given for a flat unpacking only."""
    flat = list(target.elts) if isinstance(target, (ast.Tuple, ast.List)) else [target]
    for index, one in enumerate(flat):
        position = index if len(flat) > 1 else None
        for inner in own_expressions([one]):
            name = _attribute(inner, receiver)
            if name and isinstance(inner, ast.Attribute) and isinstance(inner.ctx, ast.Store):
                exact = position if inner is one else None
                yield name, SelfAssignment(function, None, node, source=source, index=exact)


def _attribute(target: ast.AST, receiver: str) -> str:
    """The attribute's name when the target is ``receiver.name``."""
    if not (isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name)):
        return ""
    return target.attr if target.value.id == receiver else ""
