"""Whether code on the way out of a ``try`` asks how the work went.

Terminology: an *outcome* is what a test is about that names an error, a success or a state, or a variable to which the
body of a ``try`` assigns a constant (``ok = True`` behind the work).
Method: the text around the place, since a branch that the normal way decides is not in the trace.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ..source.unparsing import unparse
from ..source.walking import walk
from ..traces.nodes import Branch, Call, Node
from ..traces.where import Where, around
from ..values.evaluate import rank_dependent
from ..values.value import is_at

if TYPE_CHECKING:
    from ..analysis import Analysis

_OUTCOME = re.compile(
    r"exc|err|fail|succ|(?:^|[^a-z])(?:ok|e|kind)(?:[^a-z]|$)|done|finish|complet|clean|stat[eu]|crash|abort|interrupt"
    r"|normal",
    re.IGNORECASE,
)
_Choice = (ast.If, ast.IfExp, ast.While)


def asks_outcome(analysis: Analysis, node: Node, where: Where | None, clause: Where) -> bool:
    """Whether a test between a node and the clause around it may ask how the work went."""
    passed: list[Node] = [node]
    for inner in around(where):
        if inner is clause:
            break
        if isinstance(inner.node, Branch) and not rank_dependent(inner.node.condition):
            if _OUTCOME.search(inner.node.text):
                return True
        elif isinstance(inner.node, Call):
            passed.append(inner.node)
    return any(_is_outcome(test, names) for step in passed for test, names in _tests(analysis, step))


def _is_outcome(test: ast.expr, names: set[str]) -> bool:
    read = {unparse(part) for part in walk(test) if isinstance(part, (ast.Name, ast.Attribute))}
    return not read.isdisjoint(names) or any(_OUTCOME.search(word) for word in read)


def _tests(analysis: Analysis, node: Node) -> Iterator[tuple[ast.expr, set[str]]]:
    """The tests around a node in its own function, each with the outcomes of that function."""
    module = analysis.project.by_filename.get(node.place.filename)
    if module is None:
        return
    functions = [f for f in walk(module.tree) if isinstance(f, (ast.FunctionDef, ast.AsyncFunctionDef))]
    around_it = [f for f in functions if any(is_at(part, node.place) for part in walk(f))]
    inner = around_it[-1] if around_it else module.tree
    tried = [step for part in walk(inner) if isinstance(part, ast.Try) for step in part.body]
    names = set(_told(part for step in tried for part in walk(step)))
    for choice in walk(inner):
        if isinstance(choice, _Choice) and any(is_at(part, node.place) for part in walk(choice)):
            yield choice.test, names


def _told(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """What is assigned a constant."""
    for part in nodes:
        if isinstance(part, ast.Assign) and isinstance(part.value, ast.Constant):
            yield from map(unparse, part.targets)
