"""Make a program smaller as long as a given property holds (greedy delta debugging on the syntax tree).

Cost: each round tries O(statements) variants and restarts from the first that keeps the property; halves of
statement lists are tried first, so most of a program goes in a few steps.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from tests.lint.generated.compare import Linter, kind_of
from tests.lint.generated.oracle import judge

LISTS = ("body", "orelse", "finalbody", "handlers", "cases")


def minimise(source: str, holds: Callable[[str], bool], *, max_tries: int = 4000) -> str:
    """The smallest variant found for which ``holds``; the source itself where none is smaller."""
    current = ast.unparse(ast.parse(source)) + "\n"
    if not holds(current):
        return source
    tries = 0
    moved = True
    while moved:
        moved = False
        for variant in _variants(current):
            tries += 1
            if tries > max_tries:
                return current
            if variant != current and holds(variant):
                current, moved = variant, True
                break
    return current


def stays(kind: str, linter: Linter, code: str = "") -> Callable[[str], bool]:
    """The property to be of a kind (and to be reported by a rule)."""

    def holds(source: str) -> bool:
        try:
            outcome = judge(source)
        except (SyntaxError, ValueError):
            return False
        reports = linter(source)
        if code and code not in {r.code for r in reports}:
            return False
        return kind_of(outcome, reports) == kind

    return holds


def _variants(source: str) -> Iterator[str]:
    """Smaller programs: statements dropped, compounds replaced by a part of theirs, tests simplified."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        for name in LISTS:
            items = getattr(node, name, None)
            if isinstance(items, list) and items:
                yield from _shorter(tree, node, name, items)
    for node in ast.walk(tree):
        if isinstance(node, (ast.If, ast.While)) and isinstance(node.test, ast.BoolOp):
            whole = node.test
            for part in whole.values:
                node.test = part
                yield _text(tree)
            node.test = whole


def _shorter(tree: ast.AST, node: ast.AST, name: str, items: list[ast.AST]) -> Iterator[str]:
    candidates = []
    half = len(items) // 2
    if half > 1:
        candidates += [items[:half], items[half:]]
    candidates += [items[:place] + items[place + 1 :] for place in range(len(items))]
    for place, item in enumerate(items):
        for part in LISTS:
            inner = getattr(item, part, None)
            if _is_compound(item) and inner and isinstance(inner[0], ast.stmt):
                candidates.append(items[:place] + inner + items[place + 1 :])
    for candidate in candidates:
        if not candidate and name == "body" and not isinstance(node, ast.Module):
            candidate = [ast.Pass()]
        setattr(node, name, candidate)
        yield _text(tree)
    setattr(node, name, items)


def _is_compound(node: ast.AST) -> bool:
    definition = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return isinstance(node, ast.stmt) and not isinstance(node, definition)


def _text(tree: ast.AST) -> str:
    try:
        return ast.unparse(tree) + "\n"
    except (ValueError, IndexError, AttributeError):
        return ""
