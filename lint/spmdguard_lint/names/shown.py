"""What a function shows to the other ranks: what it reduces or gathers, its author expects to differ between ranks."""

from __future__ import annotations

import ast

from ..source.walking import walk
from .dotted import called_name

_COMPARING = frozenset(
    {
        "all_reduce",
        "all_reduce_",
        "allreduce",
        "all_gather",
        "all_gather_object",
        "all_gather_into_tensor",
        "reduce",
    }
)


def compared_with_others(function: ast.AST, names: set[str]) -> ast.Call | None:
    """The call by which a function shows the other ranks what some of its names hold: it expects theirs to differ."""
    known = set(names)
    assigned = [node for node in walk(function) if isinstance(node, (ast.Assign, ast.AnnAssign))]
    for _ in assigned:
        before = len(known)
        for node in assigned:
            if node.value is not None and _mentions(node.value, known):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                known.update(target.id for target in targets if isinstance(target, ast.Name))
        if len(known) == before:
            break
    for call in walk(function):
        if isinstance(call, ast.Call) and called_name(call) in _COMPARING:
            given = [*call.args, *(keyword.value for keyword in call.keywords)]
            if any(_mentions(argument, known) for argument in given):
                return call
    return None


def _mentions(node: ast.expr, names: set[str]) -> bool:
    return any(isinstance(part, ast.Name) and part.id in names for part in walk(node))
