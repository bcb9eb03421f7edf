"""Which except clause catches which exception, by the names of their classes."""

from __future__ import annotations

import builtins
from collections.abc import Sequence

from .nodes import Handler

ENDING_AN_ERROR = frozenset({"return", "break", "continue"})  # in ``finally``
OUT_OF_MEMORY = ("OutOfMemoryError", "OutOfMemory")
LEAVING = frozenset({"SystemExit", "KeyboardInterrupt", "GeneratorExit", "BaseException"})


def catches(handler: Handler, raised: str) -> bool:
    """Whether an except clause catches an exception.

    ``raised`` is its class name, for a project's class followed by those of its ancestors ("a|b"); "" when the
    class is unknown.
    """
    return is_caught(handler.names, raised)


def is_caught(names: Sequence[str], raised: str) -> bool:
    """The same for a clause that catches the classes ``names``; none: everything."""
    if not names:
        return True
    lineage = raised.split("|")
    if "Exception" in names and ("Exception" in lineage or not LEAVING.intersection(lineage)):
        return True
    return any(
        caught == "BaseException" or any(_is_kind_of(name, caught) for name in lineage)
        for caught in names
        if caught != "Exception"
    )


def _is_kind_of(name: str, caught: str) -> bool:
    if caught == name:
        return bool(name)
    raised_class = getattr(builtins, name, None) if name else None
    caught_class = getattr(builtins, caught, None) if caught else None
    return (
        isinstance(raised_class, type)
        and isinstance(caught_class, type)
        and issubclass(raised_class, caught_class)
    )
