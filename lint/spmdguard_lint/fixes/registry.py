"""Which rules have a fix, found from the files themselves: ``fixes/spg204.py`` mends what SPG204 finds.

A fix file holds ``fix(finding, script)``, which gives a ``Proposal`` or None where the code is not of a form that
it can mend. Looking up which fixes there are imports none of them, and no libcst.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from ..model import Applicability, Finding

if TYPE_CHECKING:
    from .script import Script

_FIX_FILE = re.compile(r"spg(\d{3})$")


@dataclass(frozen=True)
class Proposal:
    """A changed text of the whole file, and what was changed, in one sentence without a full stop."""

    applicability: Applicability
    message: str
    text: str


Fixer = Callable[[Finding, "Script"], "Proposal | None"]


@cache
def fixable_codes() -> frozenset[str]:
    """The codes of the rules that have a fix."""
    from spmdguard_lint import fixes

    found = (_FIX_FILE.match(module.name) for module in pkgutil.iter_modules(fixes.__path__))
    return frozenset(f"SPG{match[1]}" for match in found if match)


@cache
def fixer_of(code: str) -> Fixer | None:
    """The fix of a rule."""
    if code not in fixable_codes():
        return None
    module = importlib.import_module(f"spmdguard_lint.fixes.{code.lower()}")
    fixer: Fixer = module.fix
    return fixer
