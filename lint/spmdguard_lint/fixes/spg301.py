"""SPG301: agree on a stop at the end of each step, and leave every loop of the function by it."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ..model import Finding, Site
from .agreeing import agree_on_exit
from .blocks import step_from
from .imports import import_name
from .marks import mark
from .registry import Proposal
from .rewrite import Rewrite
from .script import Script, Step

Loop = cst.For | cst.While
_LOOPS = (cst.For, cst.While)


def fix(finding: Finding, script: Script) -> Proposal | None:
    """Unsafe: it adds a collective to every round."""
    site = mark(finding, "loop")
    loop = script.loop_at(site or finding.site)
    if loop is None:
        return None if site else agree_on_exit(finding, script, in_training_only=False)
    if is_rank_local(script, loop):
        return None
    rewrite = Rewrite(script)
    thrown_away = site is not None and site != finding.site
    if not (use_verdict(rewrite, loop, finding.site) if thrown_away else end_step(rewrite, loop)):
        return None
    return Proposal("unsafe", "agree on a stop at the end of each step", rewrite.code())


def is_rank_local(script: Script, node: cst.CSTNode) -> bool:
    """Whether a node stands in a function that is declared rank-local: no place for an agreement."""
    functions = (around for around in script.around(node) if isinstance(around, cst.FunctionDef))
    return any("rank_local" in script.code(one) for function in functions for one in function.decorators)


def end_step(rewrite: Rewrite, loop: Loop) -> bool:
    """Add the agreement to a loop, and the exit behind it to every loop around it in the same function."""
    name = import_name(rewrite, "spmdguard", "sync_should_stop")
    if name is None or not isinstance(loop.body, cst.IndentedBlock):
        return False
    last = loop.body.body[-1]
    if isinstance(last, cst.SimpleStatementLine) and isinstance(
        last.body[-1], (cst.Return, cst.Break, cst.Continue, cst.Raise)
    ):
        return False
    rewrite.after(last, step_from(rewrite.script, f"if {name}():\n    break\n"))
    return leave_outer(rewrite, loop)


def use_verdict(rewrite: Rewrite, loop: Loop, site: Site) -> bool:
    """Leave a loop by the agreement that is a statement of its own at the end of its body."""
    step = rewrite.script.step_at(site)
    if not isinstance(loop.body, cst.IndentedBlock) or step is not loop.body.body[-1]:
        return False
    if not isinstance(step, cst.SimpleStatementLine) or len(step.body) != 1:
        return False
    only = step.body[0]
    if not isinstance(only, cst.Expr):
        return False
    condition = rewrite.script.code(only.value)
    comment = step.trailing_whitespace.comment
    kept = f"  {comment.value}" if comment is not None else ""
    made = step_from(rewrite.script, f"if {condition}:{kept}\n    break\n")
    rewrite.replace(step, made.with_changes(leading_lines=step.leading_lines))
    return leave_outer(rewrite, loop)


def leave_outer(rewrite: Rewrite, loop: Loop) -> bool:
    """Leave the loops around one by the reason that all ranks have."""
    leave = "if {}():\n    break\n"
    for step in around(rewrite.script, loop):
        reason = import_name(rewrite, "spmdguard", "stop_reason")
        if reason is None:
            return False
        rewrite.after(step, step_from(rewrite.script, leave.format(reason)))
    return True


def around(script: Script, loop: cst.CSTNode) -> Iterator[Step]:
    """In each loop around a statement, the statement of its block in which the inner one stands."""
    inner = loop
    for outer in script.around(loop):
        if isinstance(outer, (cst.FunctionDef, cst.ClassDef)):
            return
        if isinstance(outer, _LOOPS) and isinstance(outer.body, cst.IndentedBlock):
            for step in outer.body.body:
                if step is inner or any(node is step for node in script.around(loop)):
                    assert isinstance(step, (cst.SimpleStatementLine, cst.BaseCompoundStatement))
                    yield step
            inner = outer
