"""The counter-example in two columns: what the diverging rank does, what the others do.

Entries of the same row meet each other: the first row in which they differ is where the job hangs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from spmdguard_lint.report.style import Style, num_cells, pad, printable, wrapped

HEADERS = ("what the diverging rank does", "what the others do")
_MIN_COLUMN = 16


def columns(diverging: Sequence[str], others: Sequence[str], indent: int, style: Style) -> Iterator[str]:
    """The table's lines; none where both traces are empty."""
    if not diverging and not others:
        return
    left, right = [*map(printable, diverging)], [*map(printable, others)]
    widths = _widths([HEADERS[0], *left], [HEADERS[1], *right], style.width - indent - 5)
    margin = " " * indent
    for line in _row(*HEADERS, widths, ("bold", "bold"), style):
        yield f"{margin}  {line}"
    rule, cross = style.glyph("─", "-"), style.glyph("┼", "+")
    yield style.paint(f"{margin}  {rule * (widths[0] + 1)}{cross}{rule * (widths[1] + 1)}", "dim")
    nothing = style.glyph("—", "-")
    parted = False
    for one, other in zip_longest(left, right, fillvalue=nothing):
        here = one != other and not parted
        parted = parted or here
        sign = style.paint(style.glyph("≠", "!"), "red", "bold") if here else " "
        for line in _row(one, other, widths, ("red", "green") if parted else ("dim", "dim"), style):
            yield f"{margin}{sign} {line}".rstrip()
            sign = " "


def _widths(left: Sequence[str], right: Sequence[str], room: int) -> tuple[int, int]:
    """The columns' widths: what they want, else half the room each, else what the other leaves."""
    want = max(map(num_cells, left)), max(map(num_cells, right))
    if sum(want) <= room:
        return want
    half = max(room // 2, _MIN_COLUMN)
    if want[0] <= half:
        return want[0], max(room - want[0], _MIN_COLUMN)
    if want[1] <= half:
        return max(room - want[1], _MIN_COLUMN), want[1]
    return half, half


def _row(
    one: str, other: str, widths: tuple[int, int], styles: tuple[str, str], style: Style
) -> Iterator[str]:
    bar = style.paint(style.glyph("│", "|"), "dim")
    for a, b in zip_longest(wrapped(one, widths[0]), wrapped(other, widths[1]), fillvalue=""):
        yield f"{style.paint(pad(a, widths[0]), styles[0])} {bar} {style.paint(b, styles[1])}"
