"""Registries that modules fill while they run: which entries there are is the affair of each stage of the model.

Terminology: a *registry* is a list, dict or set at the top of a file that only forward passes fill, themselves or
through functions that they call. A loop over it that communicates along the pipeline runs as often as this stage has
entries; a stage without such modules has none. Along other groups the ranks hold the same modules.

Cost: one walk of the file's functions for a loop over a name of the file that communicates along the pipeline.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..source.walking import walk
from ..traces.nodes import Op, Tree, every_node
from ..values.value import NO_TAINT, OF_A_STAGE, Taint, Taints, place_of
from .frame import Frame

if TYPE_CHECKING:
    from ..names.functions import FunctionInfo

_ALONG = re.compile(r"\bpp_?(?:group|mesh)|pipe(?:line)?_?(?:\w*_)?(?:group|mesh)", re.IGNORECASE)
_FILLS = frozenset({"append", "add", "extend", "update", "setdefault"})
_VIEWS = frozenset({"items", "keys", "values"})
_AROUND = frozenset({"list", "sorted", "tuple", "enumerate", "reversed"})


def of_registry(frame: Frame, iterated: ast.expr, nodes: Tree) -> Taints:
    """Why a loop over a registry has another number of rounds on each stage."""
    name = _name(iterated)
    if not name or name in frame.live.variables or not _is_at_the_top(frame, name):
        return NO_TAINT
    if not any(isinstance(node, Op) and _is_along_pipeline(node) for node in every_node(nodes)):
        return NO_TAINT
    fills = [(one, node) for one in frame.module.all_functions for node in _filled(one, name)]
    if not fills or not all(_runs_forward(frame, one) for one, _ in fills):
        return NO_TAINT
    return frozenset({Taint("data", place_of(frame.module.filename, fills[0][1]), OF_A_STAGE, "likely")})


def _name(node: ast.expr) -> str:
    """The name of what is looped over: ``seen``, ``seen.items()``, ``sorted(seen)``."""
    while isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr in _VIEWS:
            node = node.func.value
        elif isinstance(node.func, ast.Name) and node.func.id in _AROUND and node.args:
            node = node.args[0]
        else:
            return ""
    return node.id if isinstance(node, ast.Name) else ""


def _is_at_the_top(frame: Frame, name: str) -> bool:
    """Whether the file itself assigns a name."""
    return any(
        isinstance(part, ast.Name) and part.id == name and not isinstance(part.ctx, ast.Load)
        for statement in frame.module.tree.body
        if isinstance(statement, (ast.Assign, ast.AnnAssign))
        for part in walk(statement)
    )


def _is_along_pipeline(op: Op) -> bool:
    return op.group is not None and bool(_ALONG.search(op.text) or _ALONG.search(repr(op.group)))


def _filled(function: FunctionInfo, name: str) -> Iterator[ast.AST]:
    """Where a function puts something into the registry."""
    for node in walk(function.node):
        held: ast.expr | None = None
        if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
            held = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _FILLS:
            held = node.func.value
        if isinstance(held, ast.Name) and held.id == name:
            yield node


def _runs_forward(frame: Frame, function: FunctionInfo) -> bool:
    """Whether a function is the forward pass of a module, or one calls it."""
    if function.name == "forward" and function.cls is not None:
        return True
    return any(
        isinstance(node, ast.Call)
        and function.name in (getattr(node.func, "id", ""), getattr(node.func, "attr", ""))
        for one in frame.module.all_functions
        if one.name == "forward" and one.cls is not None
        for node in walk(one.node)
    )
