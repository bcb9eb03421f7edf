"""Colours, box characters and the width of text on a terminal."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36"}
_SEVERITY_COLOURS = {"error": "red", "warning": "yellow", "info": "blue"}
_TAB = "    "


@dataclass(frozen=True)
class Style:
    """How a report is drawn: whether in colour, whether with box characters, and how wide."""

    colour: bool = False
    unicode: bool = True
    width: int = 100

    def paint(self, text: str, *styles: str) -> str:
        """``text`` in the given styles, which are names of colours, "bold", "dim", or a severity."""
        if not self.colour or not text:
            return text
        codes = ";".join(_CODES[_SEVERITY_COLOURS.get(style, style)] for style in styles)
        return f"\x1b[{codes}m{text}\x1b[0m"

    def glyph(self, unicode: str, ascii_text: str) -> str:
        """The box character, or what stands for it where the output is not Unicode."""
        return unicode if self.unicode else ascii_text

    def number(self, count: int) -> str:
        """A step's number: circled where possible."""
        return chr(0x2460 + count - 1) if self.unicode and count <= 20 else f"({count})"


def printable(text: str) -> str:
    """``text`` with tabs as spaces, and without control characters that a terminal would obey."""
    if text.isprintable():
        return text
    text = text.replace("\t", _TAB)
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def num_cells(text: str) -> int:
    """How many columns of a terminal ``text`` takes."""
    if text.isascii():
        return len(text)
    return sum(_cells(c) for c in text)


def _cells(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def pad(text: str, num: int) -> str:
    """``text`` filled with spaces to ``num`` columns of a terminal."""
    return text + " " * (num - num_cells(text))


def wrapped(text: str, num: int) -> list[str]:
    """``text`` broken at spaces into lines of at most ``num`` columns; a longer word is broken anywhere."""
    lines: list[str] = []
    line = ""
    for word in text.split():
        while num_cells(word) > num:
            head = _head(word, num - num_cells(line) - 1 if line else num)
            lines.append(f"{line} {head}".strip())
            word, line = word[len(head) :], ""
        if not line or num_cells(line) + 1 + num_cells(word) <= num:
            line = f"{line} {word}" if line else word
        else:
            lines.append(line)
            line = word
    return [*lines, line] if line or not lines else lines


def _head(word: str, num: int) -> str:
    """As much of ``word`` as fits in ``num`` columns."""
    taken = 0
    for index, character in enumerate(word):
        taken += _cells(character)
        if taken > num:
            return word[:index]
    return word
