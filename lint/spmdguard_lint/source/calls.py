"""What a text calls, read from the text: for functions and files that are not parsed.

A call quoted in a string counts as one.
"""

from __future__ import annotations

import re

_REVERSED = re.compile(r"\([ \t]*([\w.]+)( fed)?")


def calls_in(text: str) -> dict[tuple[str, bool], None]:
    """The dotted names that stand in front of a parenthesis, each with whether it is defined there; in order.

    What follows a value without a name (``f().g(``, ``x[0].g(``) begins with a dot. Parentheses are looked for, in the
    reversed text: a pattern that begins with a word goes back and forth on every word.
    """
    found = reversed(_REVERSED.findall(text[::-1]))
    return dict.fromkeys((name[::-1], bool(definition)) for name, definition in found)
