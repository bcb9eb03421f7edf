"""Whether some function of an unparsed file can both differ between ranks and reach a collective.

The text is cut at every ``def`` line; a *chunk* runs to the next one. A property of a chunk spreads to the
chunks that call its name, so a helper of the same file counts. Cost: linear in the text, times the spread.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from ..source.calls import calls_in

_DEF = re.compile(r"^[ \t]*(?:async[ \t]+)?def[ \t]+(\w+)", re.MULTILINE)
_DOCSTRING = re.compile(r'("""|\'\'\').*?\1', re.DOTALL)


def without_docstrings(text: str) -> str:
    """The text without triple-quoted strings, whose examples would count as calls."""
    return _DOCSTRING.sub('""', text)


def any_chunk_has_both(text: str, one: Callable[[str], bool], other: Callable[[str], bool]) -> bool:
    """Whether one chunk of ``text`` has both properties, each its own or through calls."""
    starts = list(_DEF.finditer(text))
    ends = [*(match.start() for match in starts), len(text)]
    chunks = [("", text[: ends[0]])]
    chunks += [(match[1], text[match.start() : end]) for match, end in zip(starts, ends[1:], strict=True)]
    has_one = [one(body) for _, body in chunks]
    if not any(has_one):
        return False
    calls = [_names_called(body) for _, body in chunks]
    names = [name for name, _ in chunks]
    first = _spread(names, calls, has_one)
    second = _spread(names, calls, [other(body) for _, body in chunks])
    return any(a and b for a, b in zip(first, second, strict=True))


def _names_called(text: str) -> frozenset[str]:
    return frozenset(name.rpartition(".")[2] for name, is_definition in calls_in(text) if not is_definition)


def _spread(names: list[str], calls: list[frozenset[str]], has: list[bool]) -> list[bool]:
    known = {name for name, yes in zip(names, has, strict=True) if yes and not name.startswith("__")}
    for _ in range(4):
        has = [yes or not known.isdisjoint(called) for yes, called in zip(has, calls, strict=True)]
        grown = {name for name, yes in zip(names, has, strict=True) if yes and not name.startswith("__")}
        if grown == known:
            break
        known = grown
    return has
