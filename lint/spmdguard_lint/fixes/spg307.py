"""SPG307: leave the outer loop too, behind the inner one."""

from __future__ import annotations

import libcst as cst

from ..model import Finding
from .blocks import step_from
from .imports import import_name
from .marks import marked
from .registry import Proposal
from .rewrite import Rewrite
from .script import Script, Step


def fix(finding: Finding, script: Script) -> Proposal | None:
    """Unsafe: a program that means to go on after the inner loop is stopped."""
    if "sync_should_stop" not in script.text:
        return None
    for site in marked(finding, "outer"):
        loop = script.loop_at(site)
        if loop is None or not isinstance(loop.body, cst.IndentedBlock):
            continue
        step = _leading_there(finding, script, loop.body)
        rewrite = Rewrite(script)
        name = import_name(rewrite, "spmdguard", "stop_reason")
        if step is None or name is None:
            continue
        rewrite.after(step, step_from(script, f"if {name}():\n    break\n"))
        return Proposal("unsafe", "leave the outer loop as well", rewrite.code())
    return None


def _leading_there(finding: Finding, script: Script, body: cst.IndentedBlock) -> Step | None:
    """The statement of the outer loop in which the inner loop runs, itself or by a call."""
    for site in [finding.site, *marked(finding, "call")]:
        nodes = script.nodes_at(site)
        if not nodes:
            continue
        chain = [nodes[-1], *script.around(nodes[-1])]
        for step in body.body:
            if any(item is step for item in chain):
                assert isinstance(step, (cst.SimpleStatementLine, cst.BaseCompoundStatement))
                return step
    return None
