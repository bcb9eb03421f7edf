"""Containers in which an object keeps work of its own: filled where something succeeded, emptied when it is done.

Terminology: a *queue* is a list, dict or set in a field that one method fills only under a condition on a call's
result (or in a hook), and that a method empties. How many items it holds at a given moment is then this rank's own
affair: whether it is empty, and what is in it, may differ between ranks although no rank is ever asked for.
A method that is registered as a hook fills as a hook does, and a new empty container in the field empties it.
Nor does it matter how a field is filled from which a method takes what has ended meanwhile (a process, a request, a
future), since when it ends is each rank's own affair.
Registries, which are filled under settings and never emptied, are no queues; nor is what a method fills that itself
communicates, since that is how ranks keep their queues in step.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from ..names.dotted import called_name
from ..source.walking import walk
from ..values.value import NO_TAINT, Taint, Taints
from .frame import Frame
from .progress import ENDINGS

if TYPE_CHECKING:
    from ..names.classes import ClassInfo
    from ..names.functions import FunctionInfo

_FILLS = frozenset({"append", "add", "appendleft", "insert", "extend", "update", "setdefault", "put"})
_EMPTIES = frozenset({"pop", "popleft", "popitem", "clear", "remove", "discard"})
_MADE = ("dict", "list", "set", "deque", "Counter", "OrderedDict")
_EMPTYING = re.compile(  # in the text: most need no walk
    rf"\.(?:{'|'.join(sorted(_EMPTIES))})\b|\bdel\b|=\s*(?:\{{\s*\}}|\[\s*\]|[\w.]*(?:{'|'.join(_MADE)})\()"
)
_FILLING = re.compile(rf"\.(?:{'|'.join(sorted(_FILLS))})\b|\]\s*[-+*/|&]?=")
_ASKING_FOR_END = re.compile(rf"\.(?:{'|'.join(sorted(ENDINGS))})\b")
_ABOUT_KIND = frozenset(
    {"isinstance", "len", "hasattr", "getattr", "callable", "issubclass", "int", "bool", "str"}
)


class Changes(NamedTuple):
    """What a method does to the containers in fields of its object, by the names of the fields."""

    emptied: frozenset[str]
    filled: frozenset[str]


_Function = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def queue_taint(frame: Frame, cls: ClassInfo, name: str) -> Taints:
    """Why a container in a field may hold something else on each rank; empty for what is no queue."""
    cache = frame.machine.queues
    key = (id(cls), name)
    if key not in cache:
        cache[key] = NO_TAINT
        cache[key] = _find(frame, cls, name)
    return cache[key]


def _find(frame: Frame, cls: ClassInfo, name: str) -> Taints:
    reach = frame.machine.reach
    methods = [(method, own, _changes(frame, method, own)) for method, own in _with_self(cls)]
    for method, own, _ in methods:
        asks = reach.mentions(method, name) and reach.matches(method, _ASKING_FOR_END)
        if asks and not reach.reaches(method):
            ending = next(_takes_ended(method.node, own, name), None)
            if ending is not None:
                text = f"`self.{name}`, from which work is taken here as it ends,"
                return _own(frame, method, ending, text)
    if not any(method.name != "__init__" and name in changes.emptied for method, _, changes in methods):
        return NO_TAINT
    hooks = _registered([method for method, _, _ in methods if reach.mentions(method, name)])
    for method, own, changes in methods:
        if name in changes.filled and not reach.reaches(method):
            for site in _sites(method, own, name, hooks):
                return _own(frame, method, site, f"`self.{name}`, filled here as this rank's own work goes,")
    return NO_TAINT


def _own(frame: Frame, method: FunctionInfo, site: ast.AST, text: str) -> Taints:
    place = frame.place(site)._replace(filename=method.module.filename)
    return frozenset({Taint("data", place, text, "likely")})


def _takes_ended(function: ast.AST, self_name: str, name: str) -> Iterator[ast.AST]:
    """Tests for items of the field that have ended, in a method that takes items out or keeps a part of them."""
    if not any(
        name in _emptied(node, self_name) or name in _replaced(node, self_name) for node in walk(function)
    ):
        return
    items = {
        part.id
        for node in walk(function)
        if isinstance(node, (ast.For, ast.comprehension)) and _mentions(node.iter, self_name, name)
        for part in walk(node.target)
        if isinstance(part, ast.Name)
    }
    for node in walk(function):
        tests = [node.test] if isinstance(node, (ast.If, ast.While, ast.IfExp)) else getattr(node, "ifs", [])
        for test in tests:
            for asked in walk(test):
                if isinstance(asked, ast.Attribute) and asked.attr in ENDINGS:
                    names = {part.id for part in walk(asked.value) if isinstance(part, ast.Name)}
                    if names & items or _mentions(asked.value, self_name, name):
                        yield test


def _mentions(node: ast.AST, self_name: str, name: str) -> bool:
    return any(name in _field(part, self_name) for part in walk(node))


def _replaced(node: ast.AST, self_name: str) -> Iterator[str]:
    """``self.pending = alive``: the fields that get other contents."""
    for one in node.targets if isinstance(node, ast.Assign) else ():
        if isinstance(one, ast.Attribute):
            yield from _field(one, self_name)


def _sites(method: FunctionInfo, own: str, name: str, hooks: set[str]) -> Iterator[ast.AST]:
    """Where a method fills the field as this rank's own work goes; ``__init__`` itself does so on all ranks."""
    if method.name == "__init__":
        return (
            node
            for function in walk(method.node)
            if isinstance(function, _Function) and function is not method.node
            for node in walk(function)
            if _fills(node, own, name)
        )
    if method.name in hooks:
        return (node for node in walk(method.node) if _fills(node, own, name))
    return _conditional_fills(method.node, own, name)


def filling_methods(frame: Frame, cls: ClassInfo, name: str) -> list[FunctionInfo]:
    """The methods of a class that put something into a container in a field, and do not communicate."""
    reach = frame.machine.reach
    return [method for method in filled_in(frame, cls, name) if not reach.reaches(method)]


def filled_in(frame: Frame, cls: ClassInfo, name: str) -> list[FunctionInfo]:
    """The methods of a class that put something into a container in a field."""
    return [
        method
        for method, own in _with_self(cls)
        if method.name != "__init__" and name in _changes(frame, method, own).filled
    ]


def _with_self(cls: ClassInfo) -> list[tuple[FunctionInfo, str]]:
    """The methods of a class and its bases, each with its name for the object itself."""
    return [
        (method, method.self_name)
        for owner in cls.mro()
        for method in owner.methods.values()
        if method.self_name is not None
    ]


def _changes(frame: Frame, method: FunctionInfo, own: str) -> Changes:
    """What a method does to the containers in the fields of its object, remembered."""
    known = frame.machine.changes.get(method)
    if known is None:
        reach = frame.machine.reach
        found: dict[Callable[[ast.AST, str], Iterator[str]], set[str]] = {_emptied: set(), _filled: set()}
        asked = [
            kind for kind, text in ((_emptied, _EMPTYING), (_filled, _FILLING)) if reach.matches(method, text)
        ]
        for node in walk(method.node) if asked else ():
            for kind in asked:
                found[kind].update(kind(node, own))
        known = Changes(frozenset(found[_emptied]), frozenset(found[_filled]))
        frame.machine.changes[method] = known
    return known


def _registered(using: list[FunctionInfo]) -> set[str]:
    """The methods of a class that it hands to something by whose name they are hooks."""
    classes = {id(method.cls): method.cls for method in using if method.cls is not None}
    found: set[str] = set()
    for cls in classes.values():
        if not cls.module.contains(b"hook"):
            continue
        for method in cls.methods.values():
            if "hook" not in method.text:
                continue
            calls = (node for node in walk(method.node) if isinstance(node, ast.Call))
            for call in calls:
                if isinstance(call.func, ast.Attribute) and "hook" in call.func.attr:
                    handed = (part for arg in call.args for part in walk(arg))
                    found.update(
                        part.attr
                        for part in handed
                        if isinstance(part, ast.Attribute)
                        and isinstance(part.value, ast.Name)
                        and part.value.id == method.self_name
                    )
    return found


def _field(node: ast.AST, self_name: str) -> Iterator[str]:
    """The field of the object itself that an expression is, or is an item of."""
    while isinstance(node, ast.Subscript):
        node = node.value
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == self_name:
        yield node.attr


def _emptied(node: ast.AST, self_name: str) -> Iterator[str]:
    """The fields whose container a node empties, or takes an item from."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr in _EMPTIES:
            yield from _field(node.func.value, self_name)
    elif isinstance(node, ast.Delete):
        for one in node.targets:
            if isinstance(one, ast.Subscript):
                yield from _field(one, self_name)
    elif isinstance(node, ast.Assign) and _is_empty(node.value):
        for one in node.targets:
            if not isinstance(one, ast.Subscript):
                yield from _field(one, self_name)


def _is_empty(value: ast.expr) -> bool:
    """``{}``, ``[]``, ``set()``, ``defaultdict(list)``: a new container with nothing in it."""
    if isinstance(value, (ast.Dict, ast.List)):
        return not (value.keys if isinstance(value, ast.Dict) else value.elts)
    if not isinstance(value, ast.Call) or value.keywords:
        return False
    made = called_name(value)
    return made.endswith(_MADE) and (not value.args or made == "defaultdict")


def _filled(node: ast.AST, self_name: str) -> Iterator[str]:
    """The fields into whose container a node puts something."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr in _FILLS:
            yield from _field(node.func.value, self_name)
    elif isinstance(node, (ast.Assign, ast.AugAssign)):
        for one in node.targets if isinstance(node, ast.Assign) else [node.target]:
            if isinstance(one, ast.Subscript):
                yield from _field(one, self_name)


def _fills(node: ast.AST, self_name: str, name: str) -> bool:
    return name in _filled(node, self_name)


def _conditional_fills(function: ast.AST, self_name: str, name: str) -> Iterator[ast.AST]:
    """The statements that fill the field in a hook, or behind a test of what a call has returned."""
    results = {
        target.id
        for node in walk(function)
        if isinstance(node, ast.Assign) and _is_request(node.value)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    yield from _in_block(list(getattr(function, "body", [])), self_name, name, results, False)


def _is_request(value: ast.AST) -> bool:
    """Whether a value is what something else has returned: a call of a function, not of a class or built-in."""
    if not isinstance(value, ast.Call):
        return False
    called = called_name(value)
    return bool(called) and called not in _ABOUT_KIND and not called[:1].isupper()


def _in_block(
    body: list[ast.stmt], self_name: str, name: str, results: set[str], conditional: bool
) -> Iterator[ast.AST]:
    for statement in body:
        for node in walk(statement):
            if isinstance(node, _Function) and node is not statement:
                inner = node.body if isinstance(node.body, list) else [node.body]
                yield from (one for part in inner for one in walk(part) if _fills(one, self_name, name))
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from (one for one in walk(statement) if _fills(one, self_name, name))
            continue
        asks = isinstance(statement, ast.If) and _asks(statement.test, results)
        for field in ("body", "orelse", "finalbody"):
            block = getattr(statement, field, None)
            if isinstance(block, list):
                yield from _in_block(block, self_name, name, results, conditional or asks)
        if conditional and not isinstance(statement, (ast.If, ast.For, ast.While, ast.With, ast.Try)):
            yield from (one for one in walk(statement) if _fills(one, self_name, name))
        if asks and _leaves(statement):
            conditional = True


def _asks(test: ast.expr, results: set[str]) -> bool:
    return any(
        (isinstance(node, ast.Name) and node.id in results) or _is_request(node) for node in walk(test)
    )


def _leaves(statement: ast.stmt) -> bool:
    body = getattr(statement, "body", [])
    return bool(body) and isinstance(body[-1], (ast.Return, ast.Continue, ast.Raise))
