"""SPG704: the variable under the name that it has now."""

from __future__ import annotations

import re

import libcst as cst

from ..model import Finding
from .registry import Proposal
from .rewrite import Rewrite
from .script import Script, walk


def fix(finding: Finding, script: Script) -> Proposal | None:
    """Safe: the same value under the new name. A variable that is set too late is not moved."""
    named = re.match(r"`(NCCL_\w+)` has no effect any more", finding.message)
    step = script.step_at(finding.site)
    if named is None or step is None:
        return None
    rewrite = Rewrite(script)
    found = False
    for node in walk(step):
        if isinstance(node, cst.SimpleString) and node.raw_value == named[1]:
            found = True
            rewrite.replace(node, node.with_changes(value=node.value.replace(named[1], f"TORCH_{named[1]}")))
    if not found:
        return None
    return Proposal("safe", f"call the variable `TORCH_{named[1]}`", rewrite.code())
