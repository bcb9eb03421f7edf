"""Scores by which an engine of Ignite stops early, although each rank has made its own of its own batches.

Terminology: a *key* is a field of an engine's state (``state.val_loss``) or an entry of its metrics, *local* where
a function that agrees with nobody makes it of the engine's output or batch, or of other local keys. Ignite's own
metrics are reduced when they are computed and are assigned by no code of the project.

Cost: linear in the text of the files that stop early and of those they import.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from ..names.dotted import called_name
from ..source.unparsing import unparse
from ..source.walking import walk
from .support_imports import program_of

if TYPE_CHECKING:
    from ..names.functions import FunctionInfo
    from ..names.modules import Module
    from ..names.project import Project

_AGREES = re.compile(r"reduce|gather|broadcast")
_TOGETHER = re.compile(
    rb"auto_model|idist\.Parallel|DistributedDataParallel|init_process_group|idist\.initialize"
)
_OWN = frozenset({"output", "batch"})


class Written(NamedTuple):
    """An assignment to a key."""

    key: str
    value: ast.expr
    node: ast.stmt
    function: FunctionInfo
    module: Module


class Stop(NamedTuple):
    """The call that makes an engine stop early, the key it goes by, and where that is assigned."""

    call: ast.Call
    key: str
    written: Written


def local_stops(module: Module, project: Project) -> Iterator[Stop]:
    """The early stops of a file that go by a local key."""
    calls = [node for node in walk(module.tree) if isinstance(node, ast.Call) and _stops(node)]
    if not calls:
        return
    parts = program_of(module, project)
    if not any(part.asked.matches(_TOGETHER) for part in parts):
        return
    written = [one for part in parts if part.contains(b".state") for one in _writes(part)]
    for call in calls:
        given = next((k.value for k in call.keywords if k.arg == "score_function"), None)
        score = given if given is not None else call.args[1] if len(call.args) > 1 else None
        for key in _keys(_body(score, module)) if score is not None else ():
            found = _local(key, written, frozenset())
            if found is not None:
                yield Stop(call, key, found)
                break


def _stops(call: ast.Call) -> bool:
    return called_name(call) == "EarlyStopping" and (
        len(call.args) > 1 or any(k.arg == "score_function" for k in call.keywords)
    )


def _body(score: ast.expr, module: Module) -> ast.AST:
    """What a score function consists of: the lambda, or the function of that name in the file."""
    name = score.id if isinstance(score, ast.Name) else score.attr if isinstance(score, ast.Attribute) else ""
    return next((function.node for function in module.all_functions if function.name == name), score)


def _keys(node: ast.AST) -> Iterator[str]:
    """The keys that a piece of code reads."""
    for part in walk(node):
        key = _key(part)
        if key and isinstance(getattr(part, "ctx", None), ast.Load):
            yield key


def _key(node: ast.AST) -> str:
    """``val_loss`` of ``engine.state.val_loss`` and of ``engine.state.metrics["val_loss"]``, which are told apart."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        name = node.slice.value
        return f"metrics {name}" if isinstance(name, str) and _key(node.value) == "metrics" else ""
    if not isinstance(node, ast.Attribute):
        return ""
    holder = node.value
    state = isinstance(holder, ast.Attribute) and holder.attr == "state"
    return node.attr if state else ""


def _writes(module: Module) -> Iterator[Written]:
    """The assignments to keys in a file."""
    for function in module.all_functions:
        for node in function.body if isinstance(function.body, list) else ():
            for statement in walk(node):
                if not isinstance(statement, (ast.Assign, ast.AugAssign)):
                    continue
                targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
                for target in targets:
                    if _key(target):
                        yield Written(_key(target), statement.value, statement, function, module)


def _local(key: str, written: list[Written], seen: frozenset[str]) -> Written | None:
    """Where a local key is made of this rank's own batches; None where it is agreed, or not known."""
    mine = [one for one in written if one.key == key]
    if key in seen or any(_AGREES.search(unparse(one.function.node)) for one in mine):
        return None
    return next((one for one in mine if _made_of_own(one, written, seen | {key})), None)


def _made_of_own(one: Written, written: list[Written], seen: frozenset[str]) -> bool:
    read = [*_keys(one.value), *(key for value in _named(one) for key in _keys(value))]
    return any(key in _OWN or _local(key, written, seen) is not None for key in read)


def _named(one: Written) -> Iterator[ast.expr]:
    """What the function of an assignment has put under the names that its value is made of."""
    names = {part.id for part in walk(one.value) if isinstance(part, ast.Name)}
    for node in walk(one.function.node):
        if isinstance(node, (ast.Assign, ast.AugAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(part, ast.Name) and part.id in names for t in targets for part in walk(t)):
                yield node.value
