"""The comments that speak to the linter: suppressions and directives.

Terminology: a *suppression* silences findings of the codes that it names
(``# spmdguard: ignore[SPG201] -- reason``, ``# noqa: SPG201``); a *directive* tells the analysis a fact
(``# spmdguard: uniform`` on an assignment, ``# spmdguard: protocol`` on a branch). A *logical line* is a
statement or the header of a compound one, over as many rows as its brackets and backslashes make it.

A suppression covers its own row; where it ends a logical line, the whole logical line; where it stands alone
on its row, the logical line that follows. Comments inside strings are text. Cost: three substring searches
for a file without such comments, one pass of a regular expression, O(n), for the others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

DIRECTIVES = ("uniform", "protocol")

_TOKEN = re.compile(
    r"""
      (?P<comment>\#[^\n]*)
    | (?P<string>
          \"\"\"[^"\\]*(?:(?:\\.|"(?!""))[^"\\]*)*\"\"\"
        | '''[^'\\]*(?:(?:\\.|'(?!''))[^'\\]*)*'''
        | "[^"\\\n]*(?:\\.[^"\\\n]*)*"
        | '[^'\\\n]*(?:\\.[^'\\\n]*)*'
      )
    | (?P<open>[(\[{])
    | (?P<close>[)\]}])
    | (?P<joined>\\\n)
    | (?P<newline>\n)
    """,
    re.VERBOSE | re.DOTALL,
)
_OURS = re.compile(r"#\s*spmdguard:\s*(?P<word>[A-Za-z][\w-]*)?\s*(?P<codes>\[[^\]]*\]?)?")
_NOQA = re.compile(
    r"#\s*noqa\b(?P<colon>\s*:\s*(?P<codes>[A-Z]+[0-9]+(?:[,\s]+[A-Z]+[0-9]+)*))?", re.IGNORECASE
)
_OUR_CODE = re.compile(r"SPG\d*$", re.IGNORECASE)


@dataclass(frozen=True)
class Suppression:
    """One comment that silences findings; without ``codes`` those of every rule but SPG9xx."""

    row: int
    column: int
    end_column: int
    codes: tuple[str, ...]
    first_row: int
    last_row: int
    noqa: bool

    def covers(self, row: int, code: str, name: str) -> bool:
        """Whether a finding of the rule ``code``, called ``name``, that starts at ``row`` is silenced."""
        if not self.first_row <= row <= self.last_row:
            return False
        return code in self.codes or name in self.codes if self.codes else not code.startswith("SPG9")


@dataclass(frozen=True)
class UnknownDirective:
    """A ``# spmdguard:`` comment whose word is none of ours."""

    row: int
    column: int
    end_column: int
    word: str


@dataclass(frozen=True)
class SourceComments:
    """What one file's comments say; ``directives`` maps a row to the words said of its statement."""

    suppressions: tuple[Suppression, ...] = ()
    directives: Mapping[int, frozenset[str]] = field(default_factory=dict)
    unknown: tuple[UnknownDirective, ...] = ()

    def says(self, row: int, word: str) -> bool:
        """Whether the statement at ``row`` carries the directive ``word``."""
        return word in self.directives.get(row, ())


NO_COMMENTS = SourceComments()


@dataclass(frozen=True)
class _Comment:
    """A comment with the logical line that it belongs to, or precedes where it stands alone."""

    text: str
    row: int
    column: int
    alone: bool
    first_row: int
    last_row: int


def read_comments(text: str) -> SourceComments:
    """Find what the comments in ``text`` (newlines ``\\n``) say to the linter."""
    if "spmdguard:" not in text and "noqa" not in text and "NOQA" not in text:
        return NO_COMMENTS
    suppressions: list[Suppression] = []
    directives: dict[int, frozenset[str]] = {}
    unknown: list[UnknownDirective] = []
    for comment in _comments(text):
        suppressions.extend(_noqa(comment))
        for match in _OURS.finditer(comment.text):
            word = match["word"] or ""
            if word == "ignore":
                suppressions.append(_ignore(comment, match))
            elif word in DIRECTIVES:
                for row in range(comment.first_row, comment.last_row + 1):
                    directives[row] = directives.get(row, frozenset()) | {word}
            elif _is_meant(comment.text[match.end() :], match):
                column = comment.column + match.start()
                unknown.append(UnknownDirective(comment.row, column, comment.column + match.end(), word))
    return SourceComments(tuple(suppressions), directives, tuple(unknown))


def _is_meant(rest: str, match: re.Match[str]) -> bool:
    """Whether an unknown word is meant as a directive, and is no prose that mentions the tool."""
    return match["codes"] is not None or not rest.strip() or rest.lstrip().startswith("--")


def _ignore(comment: _Comment, match: re.Match[str]) -> Suppression:
    names = re.split(r"[,\s]+", (match["codes"] or "").strip("[] \t"))
    codes = tuple(name.upper() if _OUR_CODE.match(name) else name for name in names if name)
    return _suppression(comment, match, codes, noqa=False)


def _noqa(comment: _Comment) -> Iterator[Suppression]:
    match = _NOQA.search(comment.text)
    if match is None:
        return
    names = re.split(r"[,\s]+", (match["codes"] or "").strip())
    codes = tuple(name.upper() for name in names if _OUR_CODE.match(name))
    if codes or not match["colon"]:
        yield _suppression(comment, match, codes, noqa=True)


def _suppression(
    comment: _Comment, match: re.Match[str], codes: tuple[str, ...], *, noqa: bool
) -> Suppression:
    first, last = comment.row, comment.row
    if comment.alone and not noqa:
        first, last = comment.first_row, comment.last_row
    elif comment.row == comment.last_row:
        first = comment.first_row
    start = comment.column + match.start()
    return Suppression(comment.row, start, start + len(match[0].rstrip()), codes, first, last, noqa)


def _comments(text: str) -> Iterator[_Comment]:
    """Every comment, once the logical line that it belongs to is complete."""
    row, line_start, depth, first_row = 1, 0, 0, 1
    waiting: list[tuple[str, int, int, bool]] = []
    for token in _TOKEN.finditer(text):
        kind = token.lastgroup
        if kind == "comment":
            alone = depth == 0 and not text[line_start : token.start()].strip() and first_row == row
            waiting.append((token[0], row, token.start() - line_start + 1, alone))
        elif kind == "string":
            newlines = token[0].count("\n")
            if newlines:
                row += newlines
                line_start = token.start() + token[0].rfind("\n") + 1
        elif kind == "open":
            depth += 1
        elif kind == "close":
            depth = max(0, depth - 1)
        else:
            ends = kind == "newline" and depth == 0
            if ends and waiting and not _only_comments(text, line_start, token.start(), first_row, row):
                yield from (_Comment(*comment, first_row, row) for comment in waiting)
                waiting.clear()
            row, line_start = row + 1, token.end()
            if ends:
                first_row = row
    yield from (_Comment(*comment, first_row, row) for comment in waiting)


def _only_comments(text: str, line_start: int, end: int, first_row: int, row: int) -> bool:
    line = text[line_start:end].lstrip()
    return first_row == row and (not line or line.startswith("#"))
