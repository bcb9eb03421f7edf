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
from .blocks import (
    bare,
    jumps,
    last_name,
    names_bound,
    names_read,
    step_from,
    suspends,
    without_blank,
)
from .comments import kept_comments
from .imports import bound_names
from .marks import mark
from .publishing import publishes
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
    if mark(finding, "done alone") or mark(finding, "more than who") or publishes(script, operation):
        return None
    arm = _arm(script, branch, operation)
    parted = part(finding, branch)
    if arm is None or parted is None:
        return None
    shared, own = parted
    steps = _steps(arm)
    position = next(i for i, step in enumerate(steps) if any(node is operation for node in walk(step)))
    made_before = names_bound(steps[:position]) | names_bound([branch.test])
    if (
        jumps(steps[:position])
        or names_read(operation) & made_before
        or _given(operation) & names_read(own.test)
    ):
        return None
    if _is_whole(steps[position], operation):
        made = _move(own, arm, steps, position)
    else:
        made = _evaluate_first(script, own, steps[position], operation)
    if made is None:
        return None
    message, new = made
    rewrite = Rewrite(script)
    if shared is not None:
        first = without_blank(new[0])
        new = [shared.with_changes(body=cst.IndentedBlock([first, *new[1:]]))]
    else:
        new[0] = new[0].with_changes(leading_lines=[*branch.leading_lines, *new[0].leading_lines])
    rewrite.replace(branch, *new)
    return Proposal("unsafe", message, rewrite.code())


def part(finding: Finding, branch: cst.If) -> tuple[cst.If | None, cst.If] | None:
    """A branch as one on what all ranks decide alike, where there is such a part, and one inside on the rest.

    The inner one has no comments before it. None where the condition cannot be taken apart that way.
    """
    terms = _conjuncts(branch.test)
    if terms is None:
        return None
    numbers = {
        name.rsplit(" ", 1)[-1] for name, _ in finding.marks if name.startswith(f"varying of {len(terms)} ")
    }
    varying = [str(index) in numbers for index in range(len(terms))]
    if len(terms) == 1 or all(varying):
        return None, bare(branch)  # type: ignore[return-value]  # still an if
    if not any(varying) or branch.orelse is not None or any(map(_has_effects, terms)):
        return None
    alike = _all_of([term for term, differs in zip(terms, varying, strict=True) if not differs])
    own = _all_of([term for term, differs in zip(terms, varying, strict=True) if differs])
    space = cst.SimpleWhitespace(" ")
    outer = branch.with_changes(test=alike, whitespace_before_test=space)
    return outer, branch.with_changes(test=own, whitespace_before_test=space, leading_lines=())


def _conjuncts(test: cst.BaseExpression) -> list[cst.BaseExpression] | None:
    """The operands of ``a and b and c``; None for ``or``, of which ranks may decide different parts."""
    if not isinstance(test, cst.BooleanOperation):
        return [test]
    if not isinstance(test.operator, cst.And):
        return None
    left = _conjuncts(test.left) if not test.left.lpar else [test.left]
    return None if left is None else [*left, test.right]


def _all_of(terms: Sequence[cst.BaseExpression]) -> cst.BaseExpression:
    made = terms[0]
    for term in terms[1:]:
        made = cst.BooleanOperation(made, cst.And(), term)
    return made


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
    branch: cst.If, arm: cst.BaseSuite, steps: Sequence[Step], position: int
) -> tuple[str, list[Step]] | None:
    step, before, after = steps[position], steps[:position], steps[position + 1 :]
    if not before and not after and branch.orelse is None and not _has_effects(branch.test):
        lines = [*kept_comments(arm), *step.leading_lines]
        return "call it on every rank, without the branch", [step.with_changes(leading_lines=lines)]
    if not after:
        new: list[Step] = [_with_arm(branch, arm, before), without_blank(step)]
        return "move it behind the branch: every rank calls it", new
    if not before and not names_bound([step]) & names_read(branch.test):
        return "move it before the branch: every rank calls it", [step, _with_arm(branch, arm, after)]
    again = branch.orelse is None and not _has_effects(branch.test) and arm is branch.body
    if not again or names_bound([*before, step]) & names_read(branch.test):
        return None
    second = branch.with_changes(body=cst.IndentedBlock([without_blank(after[0]), *after[1:]]))
    message = "split the branch around it: every rank calls it"
    return message, [_with_arm(branch, arm, before), without_blank(step), second]


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
    script: Script, branch: cst.If, step: Step, operation: cst.BaseExpression
) -> tuple[str, list[Step]] | None:
    """``name = operation`` before the branch, and the name in its place."""
    if isinstance(script.parents[operation], (cst.WithItem, cst.Expr)):
        return None  # a context manager communicates when it is entered; a line of several statements stays
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
    inner = branch.deep_replace(operation, cst.Name(name))
    assert isinstance(inner, cst.If)
    return f"evaluate it on every rank, as `{name}`", [first.with_changes(body=[assigned]), inner]


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
