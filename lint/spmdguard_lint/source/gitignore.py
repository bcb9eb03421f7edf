"""What git ignores: the ``.gitignore`` files from the repository's root down to a folder.

A nested file overrides those above it, and inside one file the last pattern that fits decides. The files
above a root are asked only where the root lies in a git repository and is not ignored itself: a user who
names an ignored folder wants it read. ``pathspec`` is imported once a ``.gitignore`` has been seen.
"""

from __future__ import annotations

import itertools
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec


@dataclass(frozen=True)
class IgnoreStack:
    """The ``.gitignore`` files that speak about a folder, outermost first."""

    files: tuple[tuple[str, GitIgnoreSpec], ...] = ()

    @classmethod
    def at(cls, root: Path) -> IgnoreStack:
        """The files above ``root``; its own is added by ``entered``."""
        absolute = Path(os.path.abspath(root))
        above: list[Path] = []
        folder = absolute
        while not (folder / ".git").exists():
            if folder.parent == folder:
                return cls()
            folder = folder.parent
            above.append(folder)
        stack = cls()
        ancestors = [*reversed(above), absolute]
        for outer, inner in itertools.pairwise(ancestors):
            stack = stack.entered(str(outer))
            if stack.ignores(str(inner), is_folder=True):
                return cls()
        return stack

    def entered(self, folder: str) -> IgnoreStack:
        """This stack with the ``.gitignore`` of ``folder``, if it has one that can be read."""
        path = os.path.join(folder, ".gitignore")
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                lines = file.read().splitlines()
        except OSError:
            return self
        return IgnoreStack((*self.files, (os.path.abspath(folder), _spec(lines))))

    def ignores(self, path: str, *, is_folder: bool) -> bool:
        """Whether git would ignore ``path``, whose parent folders it does not ignore."""
        if not self.files:
            return False
        absolute = os.path.abspath(path)
        for folder, spec in reversed(self.files):
            relative = os.path.relpath(absolute, folder).replace(os.sep, "/") + ("/" if is_folder else "")
            verdict = spec.check_file(relative).include
            if verdict is not None:
                return verdict
        return False


def _spec(lines: list[str]) -> GitIgnoreSpec:
    """The patterns in ``lines``; like git, a line that is no pattern counts for nothing."""
    from pathspec import GitIgnoreSpec

    try:
        return GitIgnoreSpec.from_lines(lines)
    except ValueError:
        return GitIgnoreSpec.from_lines([line for line in lines if _is_pattern(line)])


def _is_pattern(line: str) -> bool:
    from pathspec import GitIgnoreSpec

    try:
        GitIgnoreSpec.from_lines([line])
    except ValueError:
        return False
    return True
