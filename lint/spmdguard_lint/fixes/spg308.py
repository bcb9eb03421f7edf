"""SPG308: let the ranks agree on the exit."""

from __future__ import annotations

from ..model import Finding
from .agreeing import agree_on_exit
from .registry import Proposal
from .script import Script


def fix(finding: Finding, script: Script) -> Proposal | None:
    """Never safe: see ``agreeing``."""
    return agree_on_exit(finding, script, in_training_only=False)
