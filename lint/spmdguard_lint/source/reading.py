"""Read a source file the way Python would: byte order mark, encoding cookie (PEP 263), any newline.

Terminology: the *cookie* is the ``coding:`` comment on one of the first two lines. ``SourceFile.text`` has
``\\n`` newlines only, so that rows agree with the parser's; ``SourceFile.content`` has the bytes as on disk.
"""

from __future__ import annotations

import codecs
import re
from array import array
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spmdguard_lint.source.suppressions import SourceComments

_COOKIE = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
_BLANK = re.compile(rb"^[ \t\f]*(?:[#\r\n]|$)")
_WIDE_MARKS = {
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}


class CannotRead(Exception):
    """A file's text cannot be had; ``row`` and ``column`` say where (from 1), ``reason`` why."""

    def __init__(self, filename: str, row: int, column: int, reason: str) -> None:
        super().__init__(filename, row, column, reason)
        self.filename = filename
        self.row = row
        self.column = column
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.filename}:{self.row}:{self.column}: {self.reason}"


@dataclass(frozen=True, eq=False)
class SourceFile:
    """One file's text; ``filename`` is what reports show, relative to the working directory if below it.

    Only the bytes are kept: most files of a large project are looked at as bytes and never as text.
    """

    path: Path
    filename: str
    encoding: str
    content: bytes

    @property
    def text(self) -> str:
        """The decoded text with ``\\n`` newlines, made anew each time."""
        return _decoded(self.content, _mark_length(self.content), self.encoding)

    @cached_property
    def lines(self) -> tuple[str, ...]:
        """The lines without their newlines; row ``r`` is ``lines[r - 1]``."""
        return tuple(self.text.split("\n"))

    @cached_property
    def _rows(self) -> tuple[bytes, array[int]]:
        """The text in UTF-8, and where each of its rows begins: the bytes that are kept anyway, but for a few files."""
        is_plain = self.encoding == "utf-8" and not _mark_length(self.content) and b"\r" not in self.content
        text = self.content if is_plain else self.text.encode("utf-8", "surrogatepass")
        lengths = (len(line) + 1 for line in text.split(b"\n"))
        return text, array("Q", accumulate(lengths, initial=0))

    def rows(self, first: int, last: int | None) -> str:
        """The text from one row to another, counted from 1, without keeping text or rows (as ``lines`` does)."""
        text, starts = self._rows
        end = len(starts) - 1 if last is None else min(last, len(starts) - 1)
        return text[starts[first - 1] : starts[end] - 1].decode("utf-8", "surrogatepass")

    @cached_property
    def comments(self) -> SourceComments:
        """The suppressions and directives in the comments; costs nothing where the file has none."""
        from spmdguard_lint.source.suppressions import read_comments

        return read_comments(self.text)


def read_source(path: Path | str, display: str) -> SourceFile:
    """Read the file at ``path``, shown as ``display``; ``CannotRead`` where Python could not read it."""
    return decode_source(read_bytes(path, display), display, Path(path))


def read_bytes(path: Path | str, display: str) -> bytes:
    """The bytes of the file at ``path``, shown as ``display``; ``CannotRead`` where there are none."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise CannotRead(display, 1, 1, f"cannot be read: {error.strerror or error}") from error


def decode_source(content: bytes, display: str, path: Path | None = None) -> SourceFile:
    """Decode ``content``, shown as ``display``; raise ``CannotRead`` where Python could not decode it."""
    encoding, start = _encoding(content, display)
    try:
        text = _decoded(content, start, encoding)
    except UnicodeDecodeError as error:
        row, column = _place(content, start + error.start)
        byte = content[start + error.start]
        reason = f"byte 0x{byte:02x} is not valid {encoding}; save the file as UTF-8 or declare its encoding"
        raise CannotRead(display, row, column, reason) from error
    except (LookupError, UnicodeError, ValueError) as error:
        reason = f"encoding `{encoding}` cannot decode this file: {error}"
        raise CannotRead(display, 1, 1, reason) from error
    if "\0" in text:
        row, column = _place(content, content.find(b"\0"))
        raise CannotRead(display, row, column, "contains a null byte, so it is no Python source")
    return SourceFile(path or Path(display), display, encoding, content)


def _decoded(content: bytes, start: int, encoding: str) -> str:
    text = (content[start:] if start else content).decode(encoding)
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def _mark_length(content: bytes) -> int:
    return len(codecs.BOM_UTF8) if content.startswith(codecs.BOM_UTF8) else 0


def _encoding(content: bytes, display: str) -> tuple[str, int]:
    """The encoding's name, and the number of bytes to skip before the text."""
    start = _mark_length(content)
    marked = bool(start)
    if not marked:
        for mark, name in _WIDE_MARKS.items():
            if content.startswith(mark):
                reason = f"is {name}; Python source is UTF-8 unless a comment declares otherwise"
                raise CannotRead(display, 1, 1, reason)
    head = content[start : start + 400]
    if b"coding" not in head:
        return "utf-8", start
    for row, line in enumerate(head.splitlines()[:2], 1):
        match = _COOKIE.match(line)
        if match:
            return _declared(match.group(1).decode("ascii", "replace"), marked, row, display), start
        if not _BLANK.match(line):
            break
    return "utf-8", start


def _declared(name: str, marked: bool, row: int, display: str) -> str:
    try:
        normal = codecs.lookup(name).name
    except LookupError as error:
        raise CannotRead(display, row, 1, f"declares the unknown encoding `{name}`") from error
    if marked and normal != "utf-8":
        raise CannotRead(display, row, 1, f"starts with a UTF-8 byte order mark but declares `{name}`")
    return normal


def _place(content: bytes, offset: int) -> tuple[int, int]:
    before = content[:offset].replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    line_start = before.rfind(b"\n") + 1
    return before.count(b"\n") + 1, len(before[line_start:].decode("utf-8", "replace").lstrip("\ufeff")) + 1
