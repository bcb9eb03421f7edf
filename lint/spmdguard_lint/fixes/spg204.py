"""SPG204: put the work of the rank that goes first into ``try``, and its barrier into ``finally``."""

from __future__ import annotations

import libcst as cst

from ..model import Finding
from .blocks import bare, jumps, names_bound, names_read, without_blank
from .marks import mark
from .registry import Proposal
from .rewrite import Rewrite
from .script import Script


def fix(finding: Finding, script: Script) -> Proposal | None:
    """Safe, but where the work may leave by a jump: then the barrier is met on that way too."""
    first, second = mark(finding, "first"), mark(finding, "second")
    if first is None or second is None:
        return None
    opening, closing = script.at(first, cst.If), script.at(second, cst.If)
    if opening is None or closing is None or script.holder(opening) is None:
        return None
    if script.holder(opening) is not script.holder(closing):
        return None
    steps, start = script.siblings(opening)
    _, end = script.siblings(closing)
    work = steps[start + 1 : end]
    if not work or names_bound(work) & names_read(closing.test):
        return None
    protected = cst.Try(
        leading_lines=work[0].leading_lines,
        body=cst.IndentedBlock([bare(work[0]), *work[1:]]),
        finalbody=cst.Finally(cst.IndentedBlock([without_blank(closing)])),
    )
    rewrite = Rewrite(script)
    rewrite.replace_run([*work, closing], protected)
    applicability = "unsafe" if jumps(work) else "safe"
    return Proposal(applicability, "put the second barrier into `finally`", rewrite.code())  # type: ignore[arg-type]  # of the two words
