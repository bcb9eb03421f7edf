"""Dotted names: read from an expression, made absolute from a relative import."""

from __future__ import annotations

import ast


def dotted_name(node: ast.AST | None) -> str:
    """``a.b.c`` for a chain of attributes on a name, ``""`` for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    parts.append(node.id)
    return ".".join(reversed(parts))


def called_name(node: ast.AST) -> str:
    """The last name of what a call calls, ``c`` of ``a.b.c(...)``; ``""`` for anything else."""
    if not isinstance(node, ast.Call):
        return ""
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def absolute_module(written: str | None, level: int, module_name: str, is_package: bool) -> str:
    """The module that ``from <dots><written> import ...`` means in ``module_name``.

    A relative import that climbs out of the known package keeps what is left of it: the result then
    names nothing in the project and is treated as external.
    """
    if level == 0:
        return written or ""
    parts = module_name.split(".")
    drop = level - 1 if is_package else level
    kept = parts[: max(len(parts) - drop, 0)]
    return ".".join([*kept, written] if written else kept)
