"""SPG601: raise the kept error behind the destruction of the process group."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from ..model import Applicability, Finding
from .blocks import jumps, names_bound, names_read, without_blank
from .marks import marked
from .registry import Proposal
from .rewrite import Rewrite
from .script import Script, Step, walk


def fix(finding: Finding, script: Script) -> Proposal | None:
    """Safe where only calls stand between: a run without an error passes the raise without effect."""
    step = _raising(finding, script)
    if step is None:
        return None
    destroying = [
        node
        for site in marked(finding, "destroy")
        for node in script.nodes_at(site)
        if isinstance(node, cst.Call)
    ]
    found = _behind(script, step, destroying)
    if found is None:
        return None
    target, between = found
    if jumps(between) or names_bound(between) & names_read(step):
        return None
    rewrite = Rewrite(script)
    rewrite.replace(step)
    rewrite.after(target, without_blank(step))
    safe: Applicability = (
        "safe" if all(isinstance(s, cst.SimpleStatementLine) for s in between[:-1]) else "unsafe"
    )
    return Proposal(safe, "raise it after the process group is destroyed", rewrite.code())


def _raising(finding: Finding, script: Script) -> Step | None:
    """The statement that raises, with the test of whether there is an error."""
    step = script.step_at(finding.site)
    if step is None:
        return None
    if isinstance(step, cst.SimpleStatementLine) and isinstance(step.body[0], cst.Raise):
        outer = script.owner(step)
        if not isinstance(outer, cst.If) or outer.orelse is not None or len(outer.body.body) != 1:
            return None
        return outer if script.holder(outer) is not None else None
    return step


def _behind(
    script: Script, step: Step, destroying: Sequence[cst.CSTNode]
) -> tuple[Step, Sequence[Step]] | None:
    """The statement that destroys the group, in this block or in the ``finally`` around it, and what is between."""
    siblings, position = script.siblings(step)
    for index in range(position + 1, len(siblings)):
        if _holds(siblings[index], destroying):
            return siblings[index], siblings[position + 1 : index + 1]
    statement = script.owner(step)
    if not isinstance(statement, cst.Try) or statement.finalbody is None or script.holder(statement) is None:
        return None
    if not _holds(statement.finalbody, destroying):
        return None
    return statement, siblings[position + 1 :]


def _holds(node: cst.CSTNode, wanted: Sequence[cst.CSTNode]) -> bool:
    return any(inner is item for inner in walk(node) for item in wanted)
