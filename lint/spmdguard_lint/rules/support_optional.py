"""Arguments of a model that are there or None as this rank's batch says.

Terminology: a *batch* is a loop's variable, or what ``next`` gives, and what is taken out of it. An argument is
*optional* when a call gives ``value if <question to the batch> else None``, or ``batch.get("name")``. A batch's key is
*absent* at times when the function that puts rows together gives it by what is in them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..names.dotted import called_name
from ..source.walking import walk
from ..traces.nodes import Branch
from .support_launches import Function, own_nodes

if TYPE_CHECKING:
    from ..analysis import Analysis

_INPUTS = ("self", "cls")
_OWN = frozenset({"rank", "group-rank", "data", "random"})


def optional_parameters(tree: ast.Module, forward: Function) -> frozenset[str]:
    """The parameters of a forward method that some call in the file gives or leaves out by what is in a batch."""
    names = [a.arg for a in (*forward.args.posonlyargs, *forward.args.args) if a.arg not in _INPUTS]
    keywords = {*names, *(a.arg for a in forward.args.kwonlyargs)}
    if not _asks_for_none(forward, keywords):
        return frozenset()
    found: set[str] = set()
    absent = frozenset(key for function in _collating(tree) for key in _absent_keys(function))
    for scope in walk(tree):
        if isinstance(scope, Function) and scope is not forward:
            found |= set(_given(scope, names, keywords, absent))
    return frozenset(found)


def _collating(tree: ast.Module) -> Iterator[Function]:
    """The functions of a file that put rows together to a batch."""
    handed = {
        getattr(node.value, "id", getattr(node.value, "attr", ""))
        for node in walk(tree)
        if isinstance(node, ast.keyword) and node.arg == "collate_fn"
    }
    for node in walk(tree):
        if isinstance(node, ast.ClassDef) and "collat" in node.name.lower():
            yield from (one for one in node.body if isinstance(one, Function) and one.name == "__call__")
        elif isinstance(node, Function) and ("collat" in node.name or node.name in handed):
            yield node


def _absent_keys(function: Function) -> Iterator[str]:
    """The keys of a batch that a function sets to None, or not at all, by a question to the rows that it is given."""
    rows = {a.arg for a in function.args.args} - {*_INPUTS}
    for node in own_nodes(function):
        if isinstance(node, ast.Assign) and rows.intersection(_names(node.value)):
            rows.update(name for target in node.targets for name in _names(target))
    for node in own_nodes(function):
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and _none_by(value, rows):
                    yield str(key.value)
        elif isinstance(node, ast.Assign) and _none_by(node.value, rows):
            yield from _keys(node)
        elif isinstance(node, ast.If) and not node.orelse and rows.intersection(_names(node.test)):
            for statement in node.body:
                yield from _keys(statement) if isinstance(statement, ast.Assign) else ()


def _keys(statement: ast.Assign) -> Iterator[str]:
    """The keys that an assignment sets: ``batch["images"] = ...``."""
    for target in statement.targets:
        if isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant):
            yield str(target.slice.value)


def _none_by(value: ast.expr, names: set[str] | frozenset[str]) -> bool:
    """Whether a value is None or not by a question to what has one of some names."""
    if not isinstance(value, ast.IfExp) or not any(map(_is_none, (value.body, value.orelse))):
        return False
    return not names.isdisjoint(_names(value.test))


def told_apart(analysis: Analysis, filename: str, forward: Function) -> frozenset[tuple[int, int]]:
    """The places of tests of arguments that come out by rank, data or chance in calls that the linter has followed."""
    arguments = forward.args
    names = {a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
    asked = {
        (node.lineno, node.col_offset)
        for node in own_nodes(forward)
        if isinstance(node, ast.If) and _of_names_alone(node.test, names - {*_INPUTS})
    }
    if not asked:
        return frozenset()
    return frozenset(
        (step.node.place.row, step.node.place.column)
        for root in analysis.roots
        for step in root.steps
        if isinstance(step.node, Branch)
        and step.node.place.filename == filename
        and (step.node.place.row, step.node.place.column) in asked
        and any(t.kind in _OWN and t.certainty != "possible" for t in step.node.condition.taint)
    )


def _of_names_alone(test: ast.expr, names: set[str]) -> bool:
    """Whether a test is about what a function is given, as it is: ``first``, ``not first``, ``mode == 2``."""
    inside = list(walk(test))
    plain = (ast.Name, ast.Constant, ast.Compare, ast.BoolOp, ast.UnaryOp)
    return all(isinstance(node, plain) for node in inside if isinstance(node, ast.expr)) and any(
        is_none_test(node) or (isinstance(node, ast.Name) and node.id in names) for node in inside
    )


def _asks_for_none(forward: Function, names: set[str]) -> bool:
    return any(is_none_test(node) in names for node in walk(forward))


def is_none_test(node: ast.AST) -> str:
    """The name of which a comparison asks whether it is None; "" for others."""
    if not isinstance(node, ast.Compare) or not isinstance(node.left, ast.Name):
        return ""
    against_none = isinstance(node.comparators[0], ast.Constant) and node.comparators[0].value is None
    return node.left.id if against_none and isinstance(node.ops[0], (ast.Is, ast.IsNot)) else ""


def _given(scope: Function, names: list[str], keywords: set[str], absent: frozenset[str]) -> Iterator[str]:
    """The parameters for which a function hands something optional to a model that it holds."""
    batches = _batches(scope)
    if not batches:
        return
    bound = {
        target.id
        for node in own_nodes(scope)
        if isinstance(node, ast.Assign) and _is_optional(node.value, batches, frozenset(), absent)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    bound.update(_bound_where_there(scope, batches))
    for call in own_nodes(scope):
        if not isinstance(call, ast.Call) or len(call.args) > len(names) or called_name(call)[:1].isupper():
            continue
        given = [*zip(names, call.args, strict=False), *((k.arg, k.value) for k in call.keywords)]
        for name, value in given:
            if name is None and batches.intersection(_names(value)):
                yield from absent & keywords
            if name in keywords and name is not None and _is_optional(value, batches, bound, absent):
                yield name


def _bound_where_there(scope: Function, batches: frozenset[str]) -> Iterator[str]:
    """Names that are None but where a question to the batch binds them: ``if "images" in batch: images = ...``."""
    empty = {
        target.id
        for node in own_nodes(scope)
        if isinstance(node, ast.Assign) and _is_none(node.value)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in own_nodes(scope):
        if isinstance(node, ast.If) and empty and batches.intersection(_names(node.test)):
            for statement in (*node.body, *node.orelse):
                if isinstance(statement, ast.Assign) and not _is_none(statement.value):
                    yield from empty.intersection(n for target in statement.targets for n in _names(target))


def _is_none(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is None


def _batches(scope: Function) -> frozenset[str]:
    """The names of what a function goes through, and of what it takes out of that."""
    found: set[str] = set()
    for node in own_nodes(scope):
        if isinstance(node, (ast.For, ast.AsyncFor)):
            found.update(_names(node.target))
        elif isinstance(node, ast.Assign) and _is_next(node.value):
            found.update(name for target in node.targets for name in _names(target))
    counters = {
        name
        for node in own_nodes(scope)
        if isinstance(node, (ast.For, ast.AsyncFor)) and isinstance(node.iter, ast.Call)
        for name in _names(node.target)
        if called_name(node.iter) in ("range", "count")
    }
    return frozenset(found - counters)


def _is_next(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and called_name(value) == "next"


def _is_optional(
    value: ast.expr, batches: frozenset[str], bound: frozenset[str] | set[str], absent: frozenset[str]
) -> bool:
    if isinstance(value, ast.Name):
        return value.id in bound
    if isinstance(value, ast.Call) and called_name(value) == "get" and all(map(_is_none, value.args[1:])):
        return isinstance(value.func, ast.Attribute) and bool(batches.intersection(_names(value.func.value)))
    if isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Constant):
        return value.slice.value in absent and not batches.isdisjoint(_names(value.value))
    return _none_by(value, batches)


def _names(node: ast.AST) -> list[str]:
    return [inner.id for inner in walk(node) if isinstance(inner, ast.Name)]
