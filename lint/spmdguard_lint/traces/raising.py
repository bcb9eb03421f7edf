"""Handlers that raise again: for which exception, or for which rank and setting."""

from __future__ import annotations

from collections.abc import Callable

from ..values.value import Value, parts_of
from .nodes import Branch, Call, Loop, Tree, Yielded

_PARTING = frozenset({"rank", "group-rank", "time", "random", "signal"})


def chooses_to_raise(handler: Tree, ways_out: Callable[[Tree], frozenset[str]]) -> bool:
    """Whether the rank or a setting, and not the exception, decides if a handler raises again.

    So it is where such a condition stands before one of two ways out, one of which raises.
    """
    if "raise" not in ways_out(handler):
        return False
    stack = [(handler, False)]
    while stack:
        nodes, inside = stack.pop()
        for node in nodes:
            if isinstance(node, Branch) and _decides(node):
                kinds = ways_out(node.then) | ways_out(node.orelse)
                if "raise" in kinds or (kinds and not inside):
                    return True
            within = inside or isinstance(node, (Call, Loop, Yielded))
            stack += [(child, within) for child in node.subtrees()]
    return False


def _decides(node: Branch) -> bool:
    kinds = {taint.kind for taint in node.condition.taint}
    return (not kinds or not _PARTING.isdisjoint(kinds)) and not _asks_exception(node.condition)


def _asks_exception(value: Value) -> bool:
    """Whether a value is made of a caught exception."""
    names = (part.data[0] for part in parts_of(value) if part.tag == "sym")
    return any(isinstance(name, tuple) and name[:1] == ("exception",) for name in names)
