"""Module-level names that functions assign to under ``global``.

``_GROUP = None`` at module level says little when ``def init(): global _GROUP; _GROUP = new_group(...)``
exists: whoever evaluates the name must take these values into account.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .scopes import statements, target_names

if TYPE_CHECKING:
    from .functions import FunctionInfo


@dataclass(frozen=True, slots=True)
class GlobalAssignment:
    """``name = value`` under ``global name``; ``value`` is None where it is part of an expression."""

    function: FunctionInfo
    value: ast.expr | None
    node: ast.AST


def global_assignments(functions: Iterable[FunctionInfo]) -> dict[str, list[GlobalAssignment]]:
    """Collect them over the functions of one module, in source order."""
    found: dict[str, list[GlobalAssignment]] = {}
    for function in functions:
        names = function.global_names if "global " in function.text else frozenset()
        if not names:
            continue
        for node in statements(function.body):
            for target, value in _targets(node):
                for name in target_names(target):
                    if name in names:
                        exact = value if isinstance(target, ast.Name) else None
                        found.setdefault(name, []).append(GlobalAssignment(function, exact, node))
    return found


def _targets(node: ast.AST) -> list[tuple[ast.AST, ast.expr | None]]:
    if isinstance(node, ast.Assign):
        return [(target, node.value) for target in node.targets]
    if isinstance(node, ast.AnnAssign):
        return [(node.target, node.value)] if node.value is not None else []
    if isinstance(node, (ast.AugAssign, ast.For, ast.AsyncFor)):
        return [(node.target, None)]
    if isinstance(node, (ast.With, ast.AsyncWith)):
        return [(item.optional_vars, None) for item in node.items if item.optional_vars is not None]
    return []
