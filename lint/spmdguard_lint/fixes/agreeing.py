"""Let the ranks agree on an exit: ``if cond: break`` becomes ``if sync_should_stop(cond): break``."""

from __future__ import annotations

import libcst as cst

from ..model import Finding
from .blocks import expression_from, last_name
from .imports import import_name
from .marks import mark
from .registry import Proposal
from .rewrite import Rewrite
from .script import Script, walk
from .training import trains

_LOOPS = (cst.For, cst.While)


def agree_on_exit(finding: Finding, script: Script, *, in_training_only: bool = True) -> Proposal | None:
    """Unsafe always: it adds a collective, and a rank then leaves because another one wants to.

    The agreement is one on the end of the whole run: outside a function that trains (an evaluation, a helper) it
    is offered only where the exit is such a stop by its kind.

    Only for a branch that stands directly in a loop, which every rank reaches in every round, and whose arm
    ends by leaving the loop.
    """
    condition = mark(finding, "condition")
    branch = script.at(condition, cst.If) if condition is not None else None
    if branch is None or script.holder(branch) is None or not isinstance(script.owner(branch), _LOOPS):
        return None
    if isinstance(branch.orelse, cst.If) or not _leaves(branch.body):
        return None
    if in_training_only and not trains(script, branch):
        return None
    if any(isinstance(node, (cst.NamedExpr, cst.Await, cst.Yield)) for node in walk(branch.test)):
        return None
    rewrite = Rewrite(script)
    agree = import_name(rewrite, "spmdguard", "sync_should_stop")
    if agree is None or _asks(branch.test):
        return None
    test = branch.test.with_changes(lpar=(), rpar=())
    call = cst.Call(expression_from(script, agree), [cst.Arg(test)])
    space = branch.whitespace_before_test
    rewrite.replace(branch.test, call)
    if isinstance(space, cst.SimpleWhitespace) and space.empty:
        rewrite.replace(branch.test, call.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()]))
    return Proposal("unsafe", "agree on the exit with the other ranks", rewrite.code())


def _leaves(arm: cst.BaseSuite) -> bool:
    """Whether an arm ends by leaving the loop around."""
    last = arm.body[-1] if arm.body else None
    if isinstance(last, cst.SimpleStatementLine):
        last = last.body[-1]
    return isinstance(last, (cst.Break, cst.Return))


def _asks(test: cst.CSTNode) -> bool:
    """Whether a condition agrees with the other ranks already."""
    return any(
        isinstance(node, cst.Call) and last_name(node.func) == "sync_should_stop" for node in walk(test)
    )
