"""Questions about statements that several fixes ask, and the statements that they make."""

from __future__ import annotations

from collections.abc import Iterable

import libcst as cst

from .script import Script, Step, walk

_SCOPES = (cst.FunctionDef, cst.ClassDef, cst.Lambda)
_LOOPS = (cst.For, cst.While)
_BINDING = (cst.AssignTarget, cst.AnnAssign, cst.AugAssign, cst.NamedExpr, cst.For, cst.CompFor)


def step_from(script: Script, text: str) -> Step:
    """A new statement, in the style of a file."""
    made = cst.parse_statement(text, script.module.config_for_parsing)
    assert isinstance(made, (cst.SimpleStatementLine, cst.BaseCompoundStatement))
    return made


def expression_from(script: Script, text: str) -> cst.BaseExpression:
    """A new expression."""
    return cst.parse_expression(text, script.module.config_for_parsing)


def inside_scope(node: cst.CSTNode) -> list[cst.CSTNode]:
    """A node and what is below it, without the bodies of functions and classes defined there."""
    found: list[cst.CSTNode] = []
    stack = [node]
    while stack:
        top = stack.pop()
        found.append(top)
        if top is node or not isinstance(top, _SCOPES):
            stack.extend(reversed(top.children))
    return found


def unconditional(node: cst.CSTNode) -> list[cst.CSTNode]:
    """The statements below a node that no branch decides on."""
    found = [child for child in node.children if not isinstance(child, (*_SCOPES, cst.If))]
    return [*found, *(below for child in found for below in unconditional(child))]


def jumps(steps: Iterable[cst.CSTNode], *, raises: bool = False) -> bool:
    """Whether control may leave the statements other than at their end: return, break, continue of outer loops."""
    return any(_jumps(step, raises, False) for step in steps)


def _jumps(node: cst.CSTNode, raises: bool, looped: bool) -> bool:
    if isinstance(node, cst.Return) or (raises and isinstance(node, cst.Raise)):
        return True
    if isinstance(node, (cst.Break, cst.Continue)):
        return not looped
    if isinstance(node, _SCOPES):
        return False
    if isinstance(node, _LOOPS):
        if node.orelse is not None and _jumps(node.orelse, raises, looped):
            return True
        return _jumps(node.body, raises, True)
    return any(_jumps(child, raises, looped) for child in node.children)


def names_read(node: cst.CSTNode) -> set[str]:
    """The names in a piece of code, whatever they are for."""
    return {name.value for name in walk(node) if isinstance(name, cst.Name)}


def names_bound(steps: Iterable[cst.CSTNode]) -> set[str]:
    """The names that statements bind in their own scope."""
    found: set[str] = set()
    for step in steps:
        for node in inside_scope(step):
            if isinstance(node, _BINDING):
                found |= _targets(node.target)
            elif isinstance(node, cst.AsName):
                found |= _targets(node.name)
            elif isinstance(node, (cst.FunctionDef, cst.ClassDef)):
                found.add(node.name.value)
            elif isinstance(node, cst.ImportAlias) and node.asname is None:
                found.add(next(n.value for n in walk(node.name) if isinstance(n, cst.Name)))
            elif isinstance(node, cst.Del):
                found |= _targets(node.target)
    return found


def _targets(node: cst.CSTNode) -> set[str]:
    """The plain names in a target; of ``x.y`` and ``x[0]``, the object that changes."""
    return {name.value for name in walk(node) if isinstance(name, cst.Name)}


def suspends(steps: Iterable[cst.CSTNode]) -> bool:
    """Whether statements yield or await."""
    return any(isinstance(n, (cst.Yield, cst.Await)) for step in steps for n in inside_scope(step))


def without_blank(step: Step) -> Step:
    """A statement without the blank lines before it; its comments stay."""
    lines = list(step.leading_lines)
    while lines and lines[0].comment is None:
        lines.pop(0)
    return step.with_changes(leading_lines=lines)


def bare(step: Step) -> Step:
    """A statement without what stands before it."""
    return step.with_changes(leading_lines=())


def only_call(step: cst.CSTNode) -> cst.Call | None:
    """The call that a statement consists of."""
    if isinstance(step, cst.SimpleStatementLine) and len(step.body) == 1:
        small = step.body[0]
        if isinstance(small, cst.Expr) and isinstance(small.value, cst.Call):
            return small.value
    return None


def last_name(node: cst.CSTNode) -> str:
    """The last part of a name: of ``dist.barrier``, ``barrier``."""
    if isinstance(node, cst.Attribute):
        return node.attr.value
    return node.value if isinstance(node, cst.Name) else ""
