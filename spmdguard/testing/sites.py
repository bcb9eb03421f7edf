"""Where in the user's code a simulated collective was begun, found fast: a few frames, cached by file."""

from __future__ import annotations

import sys
from types import FrameType
from typing import NamedTuple

from spmdguard.format import is_library_file, short_path

_PLUMBING = frozenset(
    {"wrapper", "inner", "_fn", "__enter__", "__call__", "_call_impl", "_wrapped_call_impl", "__exit__"}
)
_is_library: dict[str, bool] = {}
_sites: dict[tuple[str, int, str, str], Site] = {}


class Site(NamedTuple):
    """A line of the user's code, and the library function that it called."""

    filename: str
    line: int
    function: str
    entry: str

    def __str__(self) -> str:
        return f"{short_path(self.filename)}:{self.line} in {self.function}"


def find_site(frame: FrameType | None = None) -> Site:
    """The innermost frame that is neither ours, torch's nor plumbing of Python, and what it called."""
    frame = frame or sys._getframe(1)
    entry = ""
    known = _is_library
    while frame is not None:
        code = frame.f_code
        filename = code.co_filename
        library = known.get(filename)
        if library is None:
            library = known[filename] = is_library_file(filename)
        if not library:
            key = filename, frame.f_lineno, code.co_name, entry
            return _sites.get(key) or _sites.setdefault(key, Site(*key))
        if code.co_name not in _PLUMBING:
            entry = code.co_name
        frame = frame.f_back
    return Site("unknown place", 0, "?", entry)
