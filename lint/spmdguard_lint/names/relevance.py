"""Which modules the analysis must visit."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .modules import Module
    from .project import Project


def find_relevant(project: Project) -> list[Module]:
    """The modules whose text contains a marker, in file order."""
    return [m for m in project.all_modules if project.prefilter.matches(m.source.content)]
