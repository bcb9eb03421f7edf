"""Whether an arm of a test is taken only where nothing is under way.

Terminology: a *handle* is the name under which the result of an asynchronous call is kept (the last one of
``self.pending``), that of a container it is put into, of a function that asks for it, or what one of the arms waits
for. A test says that its operation is *idle* where the handle is None or empty, or where its ``done()`` holds.
"""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeGuard

from ..source.walking import walk
from ..traces.nodes import Branch, Event, Fallible, Node, every_node
from ..values.value import Place, is_at

if TYPE_CHECKING:
    from ..analysis import Analysis

_PUTTING = frozenset({"append", "appendleft", "add", "put", "insert", "setdefault"})


def handles_of(analysis: Analysis, place: Place) -> frozenset[str]:
    """The names that hold the result of the call at a place."""
    module = analysis.project.by_filename.get(place.filename)
    if module is None:
        return frozenset()
    begun = next(
        (node for node in walk(module.tree) if isinstance(node, ast.Call) and is_at(node, place)), None
    )
    names = {name for name, value in _held(module.tree) if value is begun}
    names |= {
        owner
        for owner, value in _held(module.tree)
        if any(part is begun or _last_name(part) in names for part in walk(value))
    }
    handles = frozenset(names - {""})
    return handles.union(_askers(module.tree, handles))


def _askers(tree: ast.AST, handles: frozenset[str]) -> Iterator[str]:
    """Functions and properties that only say whether something is under way."""
    for node in walk(tree):
        if isinstance(node, ast.FunctionDef) and isinstance(node.body[-1], ast.Return):
            asked = node.body[-1].value
            if asked is not None and len(node.body) <= 2 and _idle(asked, False, handles):
                yield node.name


def _held(tree: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """What is kept under a name, or put into a container of that name."""
    for node in walk(tree):
        if isinstance(node, ast.Assign):
            yield from ((_last_name(target), node.value) for target in node.targets)
        elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)) and node.value is not None:
            yield _last_name(node.target), node.value
        elif (
            isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _PUTTING
        ):
            yield from ((_last_name(node.func.value), value) for value in node.args)


def says_idle(node: Branch, holds: bool, handles: frozenset[str]) -> bool:
    """Whether nothing is under way where the condition of a branch holds, or does not."""
    with contextlib.suppress(SyntaxError):
        test = ast.parse(node.text, mode="eval").body
        arms = [inner for arm in node.subtrees() for inner in every_node(arm)]
        waited = {inner.text.rpartition(".")[0].rpartition(".")[2] for inner in arms if _waits(inner)} - {""}
        if node.form == "ternary":  # a method of whichever object it is; None has none
            method = test.func if isinstance(test, ast.Call) else None
            asked = isinstance(method, ast.Attribute) and _last_name(method.value) in handles | waited
            return asked and not (node.then if holds else node.orelse)
        if node.form == "while":  # the condition of the branch says that the loop ends
            return _idle(test, not holds, handles)
        return _idle(test, holds, handles | waited)
    return False


def _waits(node: Node) -> TypeGuard[Event | Fallible]:
    """Whether a node is a wait for the result of something."""
    if isinstance(node, Event):
        return node.name == "wait"
    return isinstance(node, Fallible) and any(word in node.text for word in (".result(", ".wait(", ".join("))


def _idle(test: ast.expr, holds: bool, handles: frozenset[str]) -> bool:
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _idle(test.operand, not holds, handles)
    if isinstance(test, ast.BoolOp):
        answers = (_idle(part, holds, handles) for part in test.values)
        return any(answers) if isinstance(test.op, ast.And) is holds else all(answers)
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        operator, other = test.ops[0], test.comparators[0]
        known = other.value if isinstance(other, ast.Constant) else ...
        if isinstance(operator, (ast.Is, ast.IsNot)) and known is None:
            return isinstance(operator, ast.Is) is holds and _last_name(test.left) in handles
        if isinstance(operator, (ast.Gt, ast.NotEq)) and known == 0:
            return _idle(test.left, holds, handles)
        return False
    if isinstance(test, ast.Call) and isinstance(test.func, ast.Attribute) and test.func.attr == "done":
        return holds and _last_name(test.func.value) in handles
    if isinstance(test, ast.Call) and not test.args and _last_name(test.func) in handles:
        return not holds
    if isinstance(test, ast.Call) and len(test.args) == 1 and _last_name(test.func) in ("len", "bool"):
        return _idle(test.args[0], holds, handles)
    return not holds and _last_name(test) in handles


def _last_name(node: ast.AST) -> str:
    while isinstance(node, ast.Subscript):
        node = node.value
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else ""
