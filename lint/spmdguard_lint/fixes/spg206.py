"""SPG206: move an operation out of a ``finally`` block, behind the ``try`` statement."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from ..model import Applicability, Finding
from .blocks import bare, jumps, only_call
from .comments import kept_comments
from .marks import marked
from .registry import Proposal
from .rewrite import Rewrite
from .script import Script, Step


def fix(finding: Finding, script: Script) -> Proposal | None:
    """Safe for the last statements of the block, where nothing but an exception skips what follows the ``try``."""
    step = script.step_at(finding.site)
    clause = script.owner(step) if step is not None else None
    if step is None or only_call(step) is None or not isinstance(clause, cst.Finally):
        return None
    statement = script.parents[clause]
    if not isinstance(statement, cst.Try) or script.holder(statement) is None:
        return None
    others: list[cst.CSTNode] = [statement.body, *(handler.body for handler in statement.handlers)]
    if statement.orelse is not None:
        others.append(statement.orelse.body)
    steps, position = script.siblings(step)
    end = position + 1
    while end < len(steps) and _is_operation(finding, script, steps[end]):
        end += 1
    left = [*steps[:position], *steps[end:]]
    if jumps([*others, *left]):
        return None
    rewrite = Rewrite(script)
    rewrite.replace(statement, *_apart(statement, clause, left, step), *steps[position + 1 : end])
    applicability: Applicability = "safe" if end == len(steps) else "unsafe"
    return Proposal(applicability, "move it behind the `try` statement", rewrite.code())


def _is_operation(finding: Finding, script: Script, step: Step) -> bool:
    """Whether a statement is one more operation of the block, to be moved with the first."""
    places = [script.step_at(site) for site in marked(finding, "operation")]
    return only_call(step) is not None and any(place is step for place in places)


def _apart(statement: cst.Try, clause: cst.Finally, left: Sequence[Step], moved: Step) -> list[Step]:
    """The try statement without what is moved, and what is moved; no comment is lost."""
    if left:
        assert isinstance(clause.body, cst.IndentedBlock)
        body = clause.body.with_changes(body=left)
        return [statement.with_changes(finalbody=clause.with_changes(body=body)), moved]
    comments = [line for line in clause.leading_lines if line.comment is not None] + kept_comments(
        clause.body
    )
    moved = moved.with_changes(leading_lines=[*comments, *moved.leading_lines])
    if statement.handlers:
        return [statement.with_changes(finalbody=None), moved]
    inner = statement.body
    if isinstance(inner, cst.SimpleStatementSuite):
        return [cst.SimpleStatementLine(inner.body, leading_lines=statement.leading_lines), moved]
    assert isinstance(inner, cst.IndentedBlock)
    first, *rest = inner.body
    assert isinstance(first, (cst.SimpleStatementLine, cst.BaseCompoundStatement))
    if inner.header.comment is not None:
        first = first.with_changes(
            leading_lines=[cst.EmptyLine(comment=inner.header.comment), *first.leading_lines]
        )
    first = bare(first).with_changes(leading_lines=[*statement.leading_lines, *first.leading_lines])
    behind = [line for line in inner.footer if line.comment is not None]
    moved = moved.with_changes(leading_lines=[*behind, *moved.leading_lines])
    return [first, *rest, moved]  # type: ignore[list-item]  # blocks hold lines and compounds only
