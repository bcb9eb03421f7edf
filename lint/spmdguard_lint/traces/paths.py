"""Paths: a rule's own state together with the conditions that were assumed on the way.

Terminology: a *flow* holds the paths that leave a tree, by the way in which they do ("fall", "ret", "brk",
"cont", "end", "raise"; "y-" before it where a suspended generator's block is left).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from functools import lru_cache
from typing import NamedTuple

from ..values.value import Place, Value
from .nodes import Branch, Handler, Jump, Region, Tree, Try, Yielded

MAX_PATHS = 40

Facts = frozenset[tuple[Hashable, bool]]
NO_FACTS: Facts = frozenset()


class Path(NamedTuple):
    """A rule's state and the conditions assumed."""

    state: Hashable
    facts: Facts = NO_FACTS


Paths = frozenset[Path]
NOWHERE: Paths = frozenset()
Flow = dict[str, Paths]


def add(flow: Flow, more: Flow) -> None:
    """Join two flows."""
    for kind, paths in more.items():
        if paths:
            flow[kind] = limited(flow.get(kind, NOWHERE) | paths)


def limited(paths: Iterable[Path]) -> Paths:
    """The paths, without their facts where they are too many."""
    found = frozenset(paths)
    if len(found) > MAX_PATHS:
        found = frozenset(Path(path.state) for path in found)
    return found


_JUMPS = ("ret", "brk", "cont")


def marked(place: Place, kind: str, paths: Paths) -> Paths:
    """Paths that leave a with block by a jump: they go on in the manager, and remember where they lead then."""
    return frozenset(Path(path.state, path.facts | {((place, kind), True)}) for path in paths)


def left_by_jumps(place: Place, paths: Paths) -> Flow:
    """What has come to the end of a manager: paths whose block was left by a jump take it now."""
    flow: dict[str, set[Path]] = {}
    marks = {((place, kind), True): kind for kind in _JUMPS}
    for path in paths:
        mark = next((mark for mark in marks if mark in path.facts), None)
        if mark is None:
            flow.setdefault("fall", set()).add(path)
        else:
            flow.setdefault(marks[mark], set()).add(Path(path.state, path.facts - {mark}))
    return {kind: frozenset(found) for kind, found in flow.items()}


def assumed(facts: Facts, condition: Value, holds: bool) -> Facts:
    """The facts after a condition was found to hold or not."""
    return facts | _parts(condition, holds)


def forget_conditions() -> None:
    """Let go of the conditions of a run that has ended, and of the program that they were read from."""
    _parts.cache_clear()


@lru_cache(maxsize=4096)
def _parts(condition: Value, holds: bool) -> Facts:
    """What follows from a condition that holds or does not."""
    more: set[tuple[Hashable, bool]] = set()
    stack = [(condition, holds)]
    while stack:
        value, truth_value = stack.pop()
        if value.tag == "expr" and value.data[0] == "not":
            stack.append((value.data[1][0], not truth_value))
        elif value.tag == "expr" and value.data[0] == ("and" if truth_value else "or"):
            stack.extend((operand, truth_value) for operand in value.data[1])
        else:
            more.add((value.key, truth_value))
    return frozenset(more)


def catches_all(handler: Handler) -> bool:
    """Whether no ordinary exception passes a clause."""
    return not handler.names or any(name in ("Exception", "BaseException") for name in handler.names)


def count_breaks(tree: Tree) -> int:
    """How many break statements leave the loop whose body this is."""
    total = 0
    for node in tree:
        if isinstance(node, Jump) and node.kind == "break":
            total += 1
        elif isinstance(node, Branch):
            total += count_breaks(node.then) + count_breaks(node.orelse)
        elif isinstance(node, Try):
            parts = [node.body, *(h.body for h in node.handlers), node.orelse, node.final]
            total += sum(count_breaks(part) for part in parts)
        elif isinstance(node, (Region, Yielded)):
            total += count_breaks(node.body)
    return total
