"""SPG605: keep what the teardown raises from hiding the error that is handled."""

from __future__ import annotations

import libcst as cst

from ..model import Finding
from .blocks import bare, expression_from, only_call
from .imports import import_name
from .registry import Proposal
from .rewrite import Rewrite
from .script import Script


def fix(finding: Finding, script: Script) -> Proposal | None:
    """Safe: it acts only where an error is on its way already."""
    step = script.step_at(finding.site)
    if step is None or only_call(step) is None or only_call(step) is not script.expression_at(finding.site):
        return None
    rewrite = Rewrite(script)
    suppress = import_name(rewrite, "contextlib", "suppress")
    if suppress is None:
        return None
    manager = expression_from(script, f"{suppress}(Exception)")
    wrapped = cst.With(
        [cst.WithItem(manager)], cst.IndentedBlock([bare(step)]), leading_lines=step.leading_lines
    )
    rewrite.replace(step, wrapped)
    return Proposal("safe", "suppress what the teardown raises in the handler", rewrite.code())
