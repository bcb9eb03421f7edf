"""Words that a regular expression cannot match without, so that most lines need not be searched at all.

A *need* is a set of lower-case texts of which every match holds at least one, whatever its case. It is read from the
expression's own parse tree: of what must come one after another the part with the longest texts is taken, of
alternatives all. Where nothing is certain there is no need, and the expression is searched for in every line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib import import_module
from typing import Any

_SHORTEST = 3
_MOST = 40
_REPEATS = ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT")


def need_of(expression: re.Pattern[str]) -> tuple[str, ...]:
    """Texts of which one stands, in lower case, in whatever the expression matches; empty where that is not known."""
    try:
        parser = import_module("sre_parse" if not hasattr(re, "_parser") else "re._parser")
        tree = parser.parse(expression.pattern, expression.flags & ~re.DEBUG)
    except (ImportError, AttributeError, re.error):
        return ()
    found = _of_sequence(tree)
    return tuple(sorted(found)) if found and len(found) <= _MOST else ()


def any_of(words: Iterable[str]) -> re.Pattern[str]:
    """An expression for any of these texts that looks at each place of a line once: a tree of their letters."""
    tree: dict[str, Any] = {}
    for word in words:
        node = tree
        for letter in word:
            node = node.setdefault(letter, {})
        node[""] = {}
    return re.compile(_spelled(tree) if tree else r"(?!)")


def _spelled(node: dict[str, Any]) -> str:
    """What may follow a node; where a text ends nothing more is needed."""
    if "" in node:
        return ""
    each = [re.escape(letter) + _spelled(below) for letter, below in sorted(node.items())]
    return each[0] if len(each) == 1 else f"(?:{'|'.join(each)})"


def _of_sequence(items: Iterable[Any]) -> set[str]:
    """The best of what its parts need; what is no letter of its own ends a run of letters."""
    best: set[str] = set()
    run = ""
    for operation, argument in [*items, (None, None)]:
        if str(operation) == "LITERAL" and _is_plain(chr(argument)):
            run += chr(argument).lower()
            continue
        best, run = _better(best, {run}), ""
        best = _better(best, _of_part(str(operation), argument))
    return best


def _of_part(operation: str, argument: Any) -> set[str]:
    if operation == "SUBPATTERN":
        return _of_sequence(argument[-1])
    if operation == "ATOMIC_GROUP":
        return _of_sequence(argument)
    if operation == "BRANCH":
        each = [_of_sequence(items) for items in argument[1]]
        return set().union(*each) if all(each) else set()
    if operation in _REPEATS and argument[0] >= 1:
        return _of_sequence(argument[2])
    return set()


def _is_plain(character: str) -> bool:
    """Whether it is its own only form in lower case; some letters beyond ASCII have several."""
    return character.isascii()


def _better(one: set[str], other: set[str]) -> set[str]:
    """The set whose shortest text is longer; texts too short to tell lines apart do not count."""
    return (
        max((one, other), key=lambda texts: min((len(text) for text in texts), default=0))
        if _counts(other)
        else one
    )


def _counts(texts: set[str]) -> bool:
    return bool(texts) and min(len(text) for text in texts) >= _SHORTEST
