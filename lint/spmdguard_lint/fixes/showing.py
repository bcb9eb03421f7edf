"""The unified difference that fixes make, as ``--diff`` prints it."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from ..source.reading import SourceFile
from .edits import lines_of
from .texts import raw_text


def difference(before: SourceFile, after: SourceFile) -> Iterator[str]:
    """The lines, with their newlines; a missing newline at the end of the file is said as ``diff`` does."""
    name = before.filename
    old, new = lines_of(raw_text(before)), lines_of(raw_text(after))
    for line in difflib.unified_diff(old, new, name, name):
        yield line if line.endswith(("\n", "\r")) else f"{line}\n\\ No newline at end of file\n"
