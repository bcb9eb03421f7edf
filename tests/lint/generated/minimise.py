"""Make a program smaller as long as a given property holds (greedy delta debugging on the syntax tree).

Cost: a round tries O(statements) variants, halves of statement lists first; after a success it goes on from
the same place in the smaller program, and ends after a whole round without one.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Any

from tests.lint.generated.compare import Linter, kind_of
from tests.lint.generated.oracle import judge

MISMATCHED = ("found", "found by policy", "missed")
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
LISTS = ("body", "orelse", "finalbody", "handlers", "cases")


def minimise(source: str, holds: Callable[[str], bool], *, max_tries: int = 4000) -> str:
    """The smallest variant found for which ``holds``; the source itself where none is smaller."""
    current = ast.unparse(ast.parse(source)) + "\n"
    if not holds(current):
        return source
    tries = place = since_success = 0
    while tries < max_tries:
        variants = list(_variants(current))
        if not variants or since_success > len(variants):
            return current
        place %= len(variants)
        for offset in range(place, len(variants)):
            tries, since_success = tries + 1, since_success + 1
            if variants[offset] != current and holds(variants[offset]):
                current, place, since_success = variants[offset], offset, 0
                break
        else:
            place = 0
    return current


def stays(kind: str, linter: Linter, code: str = "") -> Callable[[str], bool]:
    """The property to be of a kind (and to be reported by a rule)."""

    def holds(source: str) -> bool:
        try:
            outcome = judge(source)
        except (SyntaxError, ValueError):
            return False
        if (outcome.verdict == "mismatch") != (kind in MISMATCHED):
            return False
        reports = linter(source)
        if code and code not in {r.code for r in reports}:
            return False
        return kind_of(source, outcome, reports) == kind

    return holds


class _Without(ast.NodeTransformer):
    """Drop a definition and the simple statements that name it."""

    def __init__(self, name: str) -> None:
        self.name = name

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, DEFINITIONS) and node.name == self.name:
            return None
        if isinstance(node, (ast.Expr, ast.Assign)) and any(
            self.name in (getattr(part, "id", ""), getattr(part, "attr", "")) for part in ast.walk(node)
        ):
            return ast.Pass()
        return self.generic_visit(node)


def _variants(source: str) -> Iterator[str]:
    """Smaller programs: statements dropped, compounds replaced by a part of theirs, tests simplified."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, DEFINITIONS) and not node.name.startswith("__"):
            yield _text(ast.fix_missing_locations(_Without(node.name).visit(ast.parse(source))))
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
    return isinstance(node, ast.stmt) and not isinstance(node, DEFINITIONS)


def _text(tree: ast.AST) -> str:
    try:
        return ast.unparse(tree) + "\n"
    except (ValueError, IndexError, AttributeError):
        return ""
