"""SPG104: call it on every rank, and keep the rest of the branch."""

from __future__ import annotations

from ..model import Finding
from .hoisting import take_out
from .registry import Proposal
from .script import Script


def fix(finding: Finding, script: Script) -> Proposal | None:
    """Never safe: see ``hoisting``."""
    return take_out(finding, script)
