"""Errors that never reach the place where they would be kept: an except clause inside has swallowed them."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..names.dotted import called_name
from ..source.walking import children, walk
from ..traces.nodes import Event, Fallible, Handler, Region, Tree, Try, every_node
from ..values.value import Place, is_at

if TYPE_CHECKING:
    from ..analysis import Analysis

_BROAD = frozenset({"Exception", "BaseException", "OSError", "IOError", "EnvironmentError"})
_LOGS = frozenset(
    {"print", "debug", "info", "warning", "warn", "error", "exception", "critical", "log", "print_exc"}
)
_FILES = frozenset({"open", "write", "mkdir", "rename", "remove", "checkpoint-save"})


def swallowing(analysis: Analysis) -> Iterator[tuple[Region, Handler, Fallible]]:
    """Deferrals all of whose files are touched in a try that swallows: with the clause and the first such call."""
    seen: set[Place] = set()
    for root in analysis.roots:
        if "deferred" not in root.contents.regions:
            continue
        for region in every_node(root.tree):
            if not isinstance(region, Region) or region.kind != "deferred":
                continue
            for handler, fault in _clauses(analysis, region.body):
                if handler.place not in seen:
                    seen.add(handler.place)
                    yield region, handler, fault


def _clauses(analysis: Analysis, body: Tree) -> Iterator[tuple[Handler, Fallible]]:
    faults = _faults(body)
    for node in every_node(body):
        if not isinstance(node, Try) or node.form != "try" or not faults:
            continue
        inside = _faults(node.body)
        files = any(isinstance(event, Event) and event.name in _FILES for event in every_node(node.body))
        if not files or len(inside) != len(faults):
            continue
        for handler in broad(node):
            if only_logs(analysis, handler.place):
                yield handler, inside[0]


def logging_only(analysis: Analysis) -> Iterator[Handler]:
    """The except clauses that catch what the raise of the kept error raises, and do no more than log it."""
    seen: set[Place] = set()
    for root in analysis.roots:
        if "raise-if-deferred" not in root.contents.events:
            continue
        for node in every_node(root.tree):
            if not isinstance(node, Try) or node.form != "try" or not node.handlers:
                continue
            if not any(isinstance(e, Event) and e.name == "raise-if-deferred" for e in every_node(node.body)):
                continue
            for handler in broad(node)[:1]:
                if handler.place not in seen and only_logs(analysis, handler.place):
                    seen.add(handler.place)
                    yield handler


def broad(node: Try) -> list[Handler]:
    """The clauses of a try that catch whatever may be raised of files."""
    return [h for h in node.handlers if not h.names or _BROAD & set(h.names)]


def _faults(body: Tree) -> list[Fallible]:
    return [node for node in every_node(body) if isinstance(node, Fallible) and node.io]


def only_logs(analysis: Analysis, place: Place) -> bool:
    """Whether the except clause at a place leaves no trace of the error but a line in a log.

    One that tries again is no better where nothing is raised after the last try.
    """
    module = analysis.project.by_filename.get(place.filename)
    around = [] if module is None else _around(module.tree, place)
    clause = around[-1] if around else None
    if not isinstance(clause, ast.ExceptHandler):
        return False
    again = any(isinstance(node, (ast.For, ast.AsyncFor)) for node in around)
    silent = all(says(step) or (again and _waits(step)) for step in clause.body)
    return silent and not any(map(_raises, _following(around)))


def around_clause(analysis: Analysis, place: Place) -> ast.ExceptHandler | None:
    """The except clause at a place."""
    module = analysis.project.by_filename.get(place.filename)
    found = [] if module is None else _around(module.tree, place)
    return found[-1] if found and isinstance(found[-1], ast.ExceptHandler) else None


def _around(tree: ast.AST, place: Place) -> list[ast.AST]:
    """The clause at a place with what stands around it in its function, outermost first."""
    for child in children(tree):
        if isinstance(child, ast.ExceptHandler) and is_at(child, place):
            return [child]
        if getattr(child, "lineno", 0) <= place.row <= (getattr(child, "end_lineno", 0) or 0):
            inside = _around(child, place)
            if inside:
                return (
                    inside
                    if isinstance(inside[0], (ast.FunctionDef, ast.AsyncFunctionDef))
                    else [child, *inside]
                )
    return []


def _following(around: list[ast.AST]) -> Iterator[ast.stmt]:
    """The statements that come after a clause in its function."""
    for node, inner in itertools.pairwise(around):
        if isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
            yield from node.orelse
        for block in (getattr(node, name, []) for name in ("body", "orelse", "finalbody")):
            if inner in block:
                yield from block[block.index(inner) + 1 :]


def _raises(step: ast.stmt) -> bool:
    return any(isinstance(node, ast.Raise) or called_name(node) == "defer_error" for node in walk(step))


def _waits(step: ast.stmt) -> bool:
    return isinstance(step, ast.Continue) or (
        isinstance(step, ast.Expr) and called_name(step.value) == "sleep"
    )


def says(step: ast.stmt) -> bool:
    """Whether a statement does no more than log, or return without a value."""
    if isinstance(step, ast.Pass):
        return True
    if isinstance(step, ast.Return):
        return step.value is None or (isinstance(step.value, ast.Constant) and step.value.value is None)
    if not isinstance(step, ast.Expr):
        return False
    call = step.value
    if isinstance(call, ast.Constant):
        return True
    if not isinstance(call, ast.Call):
        return False
    name = called_name(call)
    return name in _LOGS
