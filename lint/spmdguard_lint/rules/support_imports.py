"""What a file's program consists of: the file and what it imports from the project, directly or not.

Cost: linear in the text of these files, which are not parsed for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..names.modules import Module
    from ..names.project import Project

MAX_FILES = 200


def program_of(module: Module, project: Project) -> list[Module]:
    """The module and the project's modules that it imports, directly or through others."""
    found = {module.filename: module}
    pending = [module]
    while pending and len(found) < MAX_FILES:
        current = pending.pop()
        for imported in current.asked.imports():
            for dotted in (imported.loaded, imported.target, imported.module):
                known = project.find_module(dotted, current)
                if known is not None and known.filename not in found:
                    found[known.filename] = known
                    pending.append(known)
    return list(found.values())


def program_text(module: Module, project: Project) -> bytes:
    """The text of all these files."""
    return b"\n".join(one.source.content for one in program_of(module, project))
