"""Handles that a function hands on to its caller, and callers that drop them.

Terminology: a function *hands on* when each of its returns carries the handle of an operation that it has started
and not waited for, alone or at one place of a tuple. Functions are known by name within their file.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import NamedTuple

from ..source.walking import children, walk
from ..traces.nodes import Op

Start = Callable[[ast.expr], Op | None]
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Handed(NamedTuple):
    """What a function hands on: the operation, and its place in the returned tuple (None: no tuple)."""

    op: Op
    place: int | None


def handing_on(tree: ast.AST, started: Start) -> dict[str, Handed]:
    """The functions of a file that hand a handle on; those whose name is defined twice are left out."""
    found: dict[str, list[Handed | None]] = {}
    methods = {id(child) for node in walk(tree) if isinstance(node, ast.ClassDef) for child in node.body}
    for node in walk(tree):
        if isinstance(node, _FUNCTIONS):
            name = f"self.{node.name}" if id(node) in methods else node.name
            found.setdefault(name, []).append(_handed(node, started))
    return {name: only for name, (only, *more) in found.items() if only is not None and not more}


def _handed(function: ast.FunctionDef | ast.AsyncFunctionDef, started: Start) -> Handed | None:
    names: dict[str, Op] = {}
    returned: list[Handed | None] = []
    for node in _within(function):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            op = started(node.value)
            if op is not None:
                names[node.targets[0].id] = op
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "wait":
            return None
    for node in _within(function):
        if isinstance(node, ast.Return) and node.value is not None:
            items = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
            places = [i for i, item in enumerate(items) if _op_of(item, names, started) is not None]
            op = _op_of(items[places[0]], names, started) if len(places) == 1 else None
            place = places[0] if op is not None and isinstance(node.value, ast.Tuple) else None
            returned.append(Handed(op, place) if op is not None else None)
    if not returned or any(one is None or one.place != (returned[0] or one).place for one in returned):
        return None
    return returned[0]


def _op_of(item: ast.expr, names: dict[str, Op], started: Start) -> Op | None:
    return names.get(item.id) if isinstance(item, ast.Name) else started(item)


def lost_in_rounds(
    loop: ast.For | ast.AsyncFor | ast.While, started: Start, scope: ast.AST
) -> Iterator[tuple[str, ast.expr, Op]]:
    """Names that each round binds to a new handle, and that neither the loop nor functions it calls there read."""
    inside = [node for statement in loop.body for node in (statement, *_within(statement))]
    read = _read_by(loop, scope)
    leaves = any(isinstance(node, (ast.Break, ast.Return, ast.Raise)) for node in inside)
    for node in inside if not leaves else ():
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            op = started(node.value)
            if op is not None and node.targets[0].id not in read:
                yield node.targets[0].id, node.value, op


def _read_by(loop: ast.AST, scope: ast.AST) -> set[str]:
    """The names that a loop reads, itself or in functions of its scope, whose names it reads too."""
    inner: dict[str, ast.AST] = {node.name: node for node in _within(scope) if isinstance(node, _FUNCTIONS)}
    for node in _within(scope):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda):
            inner.update((target.id, node.value) for target in node.targets if isinstance(target, ast.Name))
    read: set[str] = set()
    waiting: list[ast.AST] = [loop]
    while waiting:
        for node in walk(waiting.pop()):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id not in read:
                read.add(node.id)
                waiting.extend([inner[node.id]] if node.id in inner else [])
    return read


def _within(function: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function without those of functions inside."""
    stack = list(children(function))
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, (*_FUNCTIONS, ast.Lambda)):
            stack.extend(children(node))


def dropped(
    tree: ast.AST, handing: dict[str, Handed], reads: Callable[[ast.AST], dict[str, int]]
) -> Iterator[tuple[ast.expr, Op]]:
    """The calls whose handle nothing can wait for any more."""
    for scope in (tree, *(node for node in walk(tree) if isinstance(node, _FUNCTIONS))):
        read = reads(scope)
        for node in _within(scope):
            if isinstance(node, ast.Expr) and (handed := _call_of(node.value, handing)) is not None:
                yield node.value, handed.op
            elif isinstance(node, ast.Assign) and len(node.targets) == 1:
                call, kept = node.value, _kept(node)
                handed = _call_of(call, handing)
                if handed is not None and kept is not None and handed.place is not None:
                    target = kept[handed.place] if handed.place < len(kept) else None
                    if isinstance(target, ast.Name) and not read.get(target.id):
                        yield call, handed.op


def _kept(node: ast.Assign) -> list[ast.expr] | None:
    """The targets to which a returned tuple is spread."""
    target = node.targets[0]
    spread = isinstance(target, ast.Tuple) and not any(isinstance(t, ast.Starred) for t in target.elts)
    return target.elts if isinstance(target, ast.Tuple) and spread else None


def _call_of(value: ast.expr, handing: dict[str, Handed]) -> Handed | None:
    if not isinstance(value, ast.Call):
        return None
    if isinstance(value.func, ast.Name):
        return handing.get(value.func.id)
    own = isinstance(value.func, ast.Attribute) and isinstance(value.func.value, ast.Name)
    if (
        own
        and isinstance(value.func, ast.Attribute)
        and getattr(value.func.value, "id", "") in ("self", "cls")
    ):
        return handing.get(f"self.{value.func.attr}")
    return None
