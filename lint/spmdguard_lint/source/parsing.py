"""From source text to ``ast``, with every way to fail turned into one error.

The tree is the standard library's: it parses in a tenth of libcst's time and carries positions. Grammar
newer than the running interpreter is parsed with libcst and converted (``newer_syntax``).
"""

from __future__ import annotations

import ast
import gc
import symtable
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from .reading import SourceFile


class CannotParse(Exception):
    """A file that is not Python as far as the linter can tell; ``row`` and ``column`` count from 1."""

    def __init__(self, filename: str, row: int, column: int, reason: str) -> None:
        super().__init__(filename, row, column, reason)
        self.filename = filename
        self.row = row
        self.column = column
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.filename}:{self.row}:{self.column}: cannot parse: {self.reason}"


@contextmanager
def gc_paused() -> Iterator[None]:
    """Keep the cyclic collector off while many trees are built: it would walk all of them again and again.

    What was made meanwhile counts as old afterwards, so that switching it on does not walk all of it at once.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.freeze()
            gc.enable()
            gc.unfreeze()


def parse(source: SourceFile) -> ast.Module:
    """Parse one file; raise ``CannotParse`` whatever is wrong with it."""
    text = _checked_text(source)
    with gc_paused(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(text)
        except SyntaxError as error:
            refused = error
        except RecursionError:
            raise CannotParse(source.filename, 1, 1, "nested too deeply") from None
        except MemoryError:
            raise CannotParse(source.filename, 1, 1, "too large or nested too deeply") from None
        except ValueError as error:
            raise CannotParse(source.filename, 1, 1, str(error)) from None
        return _parse_newer(source.filename, text, refused)


def parse_rows(source: SourceFile, first: int, last: int) -> ast.Module:
    """Parse some rows alone; indented ones are the block of an ``if``. Places are those in the file."""
    text = source.rows(first, last)
    above = "\n" * (first - 2) + "if 1:\n" if text[:1].isspace() else "\n" * (first - 1)
    with gc_paused(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(above + text)
        except (SyntaxError, RecursionError, MemoryError, ValueError) as error:
            raise CannotParse(source.filename, first, 1, str(error)) from None


def check_syntax(source: SourceFile) -> None:
    """Raise ``CannotParse`` for a file that ``parse`` would refuse, at a fraction of its cost.

    ``symtable`` stops before Python objects are made of the tree; it also refuses a little that ``parse``
    accepts (a ``global`` after use), so its errors are put to ``parse`` for the verdict.
    """
    text = _checked_text(source)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            symtable.symtable(text, source.filename, "exec")
        except (SyntaxError, RecursionError, MemoryError, ValueError):
            parse(source)


def _parse_newer(filename: str, text: str, refused: SyntaxError) -> ast.Module:
    """Try the grammar of later Python versions; the interpreter's own error is the better one to report."""
    from .newer_syntax import parse_newer

    try:
        return parse_newer(text, filename)
    except Exception:
        row, column = max(refused.lineno or 1, 1), max(refused.offset or 1, 1)
        raise CannotParse(filename, row, column, refused.msg) from None


def _checked_text(source: SourceFile) -> str:
    """The text without a byte order mark; Python versions differ in how they refuse null bytes."""
    try:
        text = source.text.removeprefix("\ufeff")
    except UnicodeError as error:
        raise CannotParse(source.filename, 1, 1, str(error)) from None
    null = text.find("\0")
    if null >= 0:
        row, column = text.count("\n", 0, null) + 1, null - text.rfind("\n", 0, null)
        raise CannotParse(source.filename, row, column, "source code cannot contain null bytes")
    return text
