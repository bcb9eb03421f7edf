"""What adopting says of a line, whichever version of the file the reader has.

Terminology: rewriting goes through many versions of a file, and a row counts in one of them. A row *moves* to
another version along the lines that both have, whatever their indentation; a line that the other lacks
is where the line before it is. Cost: one comparison of two versions, remembered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import lru_cache

from ..source.reading import SourceFile


@dataclass(frozen=True)
class Note:
    """A text on one row of a file."""

    filename: str
    row: int
    text: str

    def moved(self, source: SourceFile, target: SourceFile) -> Note:
        """The note on the row of another version of its file."""
        return replace(self, row=row_in(target, source, self.row))

    def __str__(self) -> str:
        return f"{self.filename}:{self.row}: {self.text}"


def row_in(target: SourceFile, source: SourceFile, row: int) -> int:
    """Where a row of one version of a file is in another."""
    if source.content == target.content:
        return row
    for tag, start, end, other_start, other_end in _compared(source, target):
        if start < row <= end:
            offset = row - 1 - start
            if tag == "equal":
                return other_start + offset + 1
            return max(1, min(other_start + offset + 1, other_end))
    return row


@lru_cache(maxsize=16)
def _compared(source: SourceFile, target: SourceFile) -> Sequence[tuple[str, int, int, int, int]]:
    lines, others = ([line.strip() for line in each.lines] for each in (source, target))
    return SequenceMatcher(None, lines, others, autojunk=False).get_opcodes()
