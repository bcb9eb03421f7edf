"""From an old and a new text to the edits between them, and back.

An edit replaces whole lines; newlines are those of the file. Cost: O(n) for the common beginning and end, and
a difference of the lines between.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence

from ..model import Edit, Location, Site

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z")


def lines_of(text: str) -> list[str]:
    """The lines with their newlines; unlike ``splitlines``, only what Python takes for a newline ends one."""
    return _LINE.findall(text)


def edits_between(filename: str, old: str, new: str) -> tuple[Edit, ...]:
    """The edits that turn ``old`` into ``new``, in order."""
    before, after = lines_of(old), lines_of(new)
    first = 0
    while first < min(len(before), len(after)) and before[first] == after[first]:
        first += 1
    last = 0
    while last < min(len(before), len(after)) - first and before[-1 - last] == after[-1 - last]:
        last += 1
    middle, wanted = before[first : len(before) - last], after[first : len(after) - last]
    found = []
    matcher = difflib.SequenceMatcher(None, middle, wanted, autojunk=False)
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag != "equal":
            start, end = Location(first + i1 + 1, 1), Location(first + i2 + 1, 1)
            found.append(Edit("".join(wanted[j1:j2]), Site(filename, start, end)))
    return tuple(found)


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """``text`` after edits that do not overlap."""
    lines = lines_of(text)
    for edit in sorted(edits, key=lambda edit: edit.site.start, reverse=True):
        lines[edit.site.start.row - 1 : edit.site.end.row - 1] = [edit.content]
    return "".join(lines)


def overlap(one: Sequence[Edit], other: Sequence[Edit]) -> bool:
    """Whether two sets of edits touch the same or neighbouring lines."""
    return any(
        a.site.start.row <= b.site.end.row and b.site.start.row <= a.site.end.row for a in one for b in other
    )
