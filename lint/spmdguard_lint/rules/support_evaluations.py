"""Trainers of transformers whose own ``evaluate`` scores this rank's share, where a callback stops by the score.

Terminology: an *own evaluation* is a method of a Trainer's subclass that replaces the library's, loops over the loader
of the evaluation (of which each rank gets a share), and neither hands over to the library nor agrees with the other
ranks, itself or in the methods that it calls.

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
    from ..names.classes import ClassInfo
    from ..names.functions import FunctionInfo
    from ..names.modules import Module
    from ..names.project import Project

STOPS = "EarlyStoppingCallback"
_EVALUATIONS = ("evaluate", "evaluation_loop", "prediction_loop")
_LIBRARIES = ("transformers.", "trl.", "sentence_transformers.")
_AGREES = re.compile(r"reduce|gather|broadcast|super\(|\.evaluat(?:e|ion_loop)\(|prediction_loop\(|predict\(")
_LOADER = re.compile(r"loader", re.IGNORECASE)


class OwnEvaluation(NamedTuple):
    """The callback by which training stops, and the evaluation whose score each rank makes for itself."""

    callback: ast.Call
    method: FunctionInfo
    loop: ast.For


def own_evaluations(module: Module, project: Project) -> Iterator[OwnEvaluation]:
    """The early stops that a file makes, where its program scores each rank's share alone."""
    calls = [n for n in walk(module.tree) if isinstance(n, ast.Call) and called_name(n) == STOPS]
    if not calls:
        return
    for part in program_of(module, project):
        for cls in part.all_classes if part.contains(b"Trainer") else ():
            found = _own_evaluation(cls)
            if found is not None:
                yield OwnEvaluation(calls[0], *found)
                return


def _own_evaluation(cls: ClassInfo) -> tuple[FunctionInfo, ast.For] | None:
    """The evaluation by which a Trainer's subclass replaces the library's, with its loop over the share."""
    bases = cls.external_bases()
    if not any(base.startswith(_LIBRARIES) and base.endswith("Trainer") for base in bases):
        return None
    for name in _EVALUATIONS:
        method = cls.find_method(name)
        loop = _loop_over_loader(method) if method is not None else None
        if method is not None and loop is not None and not _agrees(cls, method, frozenset()):
            return method, loop
    return None


def _loop_over_loader(method: FunctionInfo) -> ast.For | None:
    """The loop of a method that runs over a loader, by its name or by what the name was given."""
    loops = [node for node in walk(method.node) if isinstance(node, ast.For)]
    made = {
        target.id
        for node in walk(method.node)
        if isinstance(node, ast.Assign) and _LOADER.search(unparse(node.value))
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    return next(
        (
            loop
            for loop in loops
            if _LOADER.search(unparse(loop.iter))
            or any(isinstance(part, ast.Name) and part.id in made for part in walk(loop.iter))
        ),
        None,
    )


def _agrees(cls: ClassInfo, method: FunctionInfo, seen: frozenset[str]) -> bool:
    """Whether a method, or one of the same object that it calls, agrees with the other ranks or asks the library to."""
    if _AGREES.search(unparse(method.node)):
        return True
    seen |= {method.name}
    for node in walk(method.node):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            called = cls.find_method(node.func.attr) if unparse(node.func.value) == method.self_name else None
            if called is not None and called.name not in seen and _agrees(cls, called, seen):
                return True
    return False
