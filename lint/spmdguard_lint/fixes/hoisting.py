"""Take a collective out of a branch that only some ranks enter.

Terminology: the *arm* is the block of the branch in which the operation stands. A whole statement is moved
before or behind the branch, or the branch is split around it; an operation inside a larger statement is
evaluated before the branch, into a new name. None of it is done where the operation reads what the arm makes.
"""

from __future__ import annotations

import builtins
import keyword
from collections.abc import Sequence

import libcst as cst

from ..model import Finding
from .blocks import bare, jumps, last_name, names_bound, names_read, step_from, suspends, without_blank
from .comments import kept_comments
from .imports import bound_names
from .marks import mark
from .registry import Proposal
from .rewrite import Rewrite
from .script import Script, Step, walk

_PASSED_THROUGH = (
    cst.Arg, cst.Call, cst.Attribute, cst.Subscript, cst.Assign, cst.AnnAssign, cst.AugAssign, cst.Expr,
    cst.SimpleStatementLine, cst.With, cst.WithItem, cst.IndentedBlock, cst.BinaryOperation, cst.UnaryOperation,
    cst.Tuple, cst.List, cst.Dict, cst.Element, cst.DictElement, cst.Comparison, cst.ComparisonTarget,
    cst.FormattedString, cst.FormattedStringExpression, cst.Raise, cst.Return, cst.SubscriptElement, cst.Index,
)  # fmt: skip


def take_out(finding: Finding, script: Script) -> Proposal | None:
    """Unsafe always: every rank makes the call then, and with it all that the call does besides."""
    condition = mark(finding, "condition")
    branch = script.at(condition, cst.If) if condition is not None else None
    operation = script.expression_at(finding.site)
    if branch is None or operation is None or script.holder(branch) is None:
        return None
    arm = _arm(script, branch, operation)
    if arm is None:
        return None
    steps = _steps(arm)
    position = next(i for i, step in enumerate(steps) if any(node is operation for node in walk(step)))
    made_before = names_bound(steps[:position]) | names_bound([branch.test])
    if names_read(operation) & made_before or _given(operation) & names_read(branch.test):
        return None
    rewrite = Rewrite(script)
    if _is_whole(steps[position], operation):
        return _move(rewrite, branch, arm, steps, position)
    return _evaluate_first(rewrite, branch, steps[position], operation)


def _given(operation: cst.BaseExpression) -> set[str]:
    """The names in the arguments of a call: what the condition asks of them may not hold on other ranks."""
    if not isinstance(operation, cst.Call):
        return set()
    return {name for arg in operation.args for name in names_read(arg.value)}


def _arm(script: Script, branch: cst.If, operation: cst.CSTNode) -> cst.BaseSuite | None:
    """The suite of a branch that holds a node; None in another part of an ``elif`` chain."""
    around = list(script.around(operation))
    if any(node is branch.body for node in around):
        return branch.body
    if isinstance(branch.orelse, cst.Else) and any(node is branch.orelse.body for node in around):
        return branch.orelse.body
    return None


def _steps(arm: cst.BaseSuite) -> list[Step]:
    """The statements of a suite, those of a one-line suite as lines."""
    if isinstance(arm, cst.SimpleStatementSuite):
        return [
            cst.SimpleStatementLine([small.with_changes(semicolon=cst.MaybeSentinel.DEFAULT)])
            if len(arm.body) > 1
            else cst.SimpleStatementLine([small])
            for small in arm.body
        ]
    return list(arm.body)  # type: ignore[arg-type]  # blocks hold lines and compounds only


def _is_whole(step: Step, operation: cst.BaseExpression) -> bool:
    """Whether a statement is an operation, or gives its result a name."""
    if not isinstance(step, cst.SimpleStatementLine) or len(step.body) != 1:
        return False
    small = step.body[0]
    return isinstance(small, (cst.Expr, cst.Assign, cst.AnnAssign)) and small.value is operation


def _move(
    rewrite: Rewrite, branch: cst.If, arm: cst.BaseSuite, steps: Sequence[Step], position: int
) -> Proposal | None:
    step, before, after = steps[position], steps[:position], steps[position + 1 :]
    if jumps(before):
        return None
    if not before and not after and branch.orelse is None and not _has_effects(branch.test):
        lines = [*branch.leading_lines, *kept_comments(arm), *step.leading_lines]
        rewrite.replace(branch, bare(step).with_changes(leading_lines=lines))
        return Proposal("unsafe", "call it on every rank, without the branch", rewrite.code())
    if not after:
        rewrite.replace(branch, _with_arm(branch, arm, before), without_blank(step))
        return Proposal("unsafe", "move it behind the branch: every rank calls it", rewrite.code())
    if not before and not names_bound([step]) & names_read(branch.test):
        rewrite.replace(
            branch,
            step.with_changes(leading_lines=[*branch.leading_lines, *step.leading_lines]),
            bare(_with_arm(branch, arm, after)),
        )
        return Proposal("unsafe", "move it before the branch: every rank calls it", rewrite.code())
    again = branch.orelse is None and not _has_effects(branch.test) and arm is branch.body
    if not again or names_bound([*before, step]) & names_read(branch.test):
        return None
    second = bare(branch).with_changes(body=cst.IndentedBlock([without_blank(after[0]), *after[1:]]))
    rewrite.replace(branch, _with_arm(branch, arm, before), without_blank(step), second)
    return Proposal("unsafe", "split the branch around it: every rank calls it", rewrite.code())


def _with_arm(branch: cst.If, arm: cst.BaseSuite, steps: Sequence[Step]) -> cst.If:
    """A branch with other statements in one arm."""
    if isinstance(arm, cst.IndentedBlock):
        body: cst.BaseSuite = arm.with_changes(body=list(steps) or [cst.SimpleStatementLine([cst.Pass()])])
    else:
        body = cst.IndentedBlock(list(steps) or [cst.SimpleStatementLine([cst.Pass()])])
    if arm is branch.body:
        return branch.with_changes(body=body)
    assert isinstance(branch.orelse, cst.Else)
    if not steps and not kept_comments(arm):
        return branch.with_changes(orelse=None)
    return branch.with_changes(orelse=branch.orelse.with_changes(body=body))


def _evaluate_first(
    rewrite: Rewrite, branch: cst.If, step: Step, operation: cst.BaseExpression
) -> Proposal | None:
    """``name = operation`` before the branch, and the name in its place."""
    script = rewrite.script
    if isinstance(script.parents[operation], cst.WithItem):
        return None  # a context manager communicates when it is entered, not when it is made
    for node in script.around(operation):
        if node is branch.body or node is getattr(branch.orelse, "body", None):
            break
        if not isinstance(node, _PASSED_THROUGH):
            return None
    if names_read(operation) & _bound_inside(step) or suspends([operation]):
        return None
    name = _fresh_name(script, operation)
    first = step_from(script, f"{name} = value")
    assert isinstance(first, cst.SimpleStatementLine)
    assigned = first.body[0].with_changes(value=operation.with_changes(lpar=(), rpar=()))
    made = first.with_changes(body=[assigned], leading_lines=branch.leading_lines)
    rewrite.replace(operation, cst.Name(name))
    rewrite.before(branch, made)
    rewrite.bared.add(branch)
    return Proposal("unsafe", f"evaluate it on every rank, as `{name}`", rewrite.code())


def _bound_inside(step: Step) -> set[str]:
    """What a compound statement itself binds: the names of a with statement."""
    return names_bound([step]) if isinstance(step, cst.BaseCompoundStatement) else set()


def _fresh_name(script: Script, operation: cst.BaseExpression) -> str:
    """A name for a result, after what is called."""
    called = last_name(operation.func) if isinstance(operation, cst.Call) else last_name(operation)
    taken = bound_names(script.tree) | set(dir(builtins)) | set(keyword.kwlist)
    base = called.strip("_") or "value"
    for name in (base, f"{base}_result", *(f"{base}_result_{n}" for n in range(2, 100))):
        if name not in taken and name.isidentifier():
            return name
    raise AssertionError("a hundred names are taken")


def _has_effects(test: cst.BaseExpression) -> bool:
    """Whether evaluating a condition once more, or not at all, could matter: it calls something with arguments."""
    return any(
        isinstance(node, (cst.NamedExpr, cst.Await, cst.Yield)) or (isinstance(node, cst.Call) and node.args)
        for node in walk(test)
    )
