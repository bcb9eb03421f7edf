"""Numbers for what a program is told: how many ranks play which role, as far as it checks that they add up.

Terminology: a *check* is an ``assert``, or an ``if`` that raises, on the world size and at most two numbers that
are the same on all ranks and otherwise not known (``assert actors + rollouts == world_size``). The numbers that pass
all checks are those with which the program may be started.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from itertools import product

from ..traces.nodes import Branch, Jump, Tree, every_node
from ..values.evaluate import Valuation, truth, world_dependent
from ..values.value import Value, parts_of

_MOST = 2
Numbers = Mapping[Hashable, int]


def numbers_for(tree: Tree, world: int, local: int) -> Iterator[tuple[Numbers, str]]:
    """What the numbers of a tree's checks may be in a world, and how to say it; once none, where none are checked."""
    checks, leaves = _checks(tree)
    if not checks or not 0 < len(leaves) <= _MOST:
        yield {}, ""
        return
    for values in product(range(1, world + 1), repeat=len(leaves)):
        known = dict(zip(leaves, values, strict=True))
        at = Valuation(0, world, local, known)
        if all(truth(check, at) is False for check in checks):
            pairs = zip(leaves.values(), values, strict=True)
            yield known, " and ".join(f"`{name}` = {value}" for name, value in pairs)


def worlds_of(tree: Tree, worlds: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Those of some worlds, each with its number of ranks on a host, that no check of a tree refuses."""
    checks = [node.condition for node in _checking(tree)]
    return [
        (world, local)
        for world, local in worlds
        if not any(truth(check, Valuation(0, world, local)) for check in checks)
    ]


def _checking(tree: Tree) -> Iterator[Branch]:
    """The checks of the world size; a program fails where their conditions hold."""
    for node in every_node(tree):
        if not isinstance(node, Branch) or node.condition.taint or not world_dependent(node.condition):
            continue
        last = node.then[-1] if node.then else None
        if isinstance(last, Jump) and last.kind in ("assert", "raise"):
            yield node


def _checks(tree: Tree) -> tuple[list[Value], dict[Hashable, str]]:
    """The conditions under which checks fail, and the numbers that they ask for, by key, with their names."""
    checks: list[Value] = []
    leaves: dict[Hashable, str] = {}
    for node in _checking(tree):
        parts = parts_of(node.condition)
        asked: dict[Hashable, str] = {part.key: _name(part) for part in parts if part.tag == "sym"}
        if asked and all(asked.values()):
            checks.append(node.condition)
            leaves.update(asked)
    return checks, dict(sorted(leaves.items(), key=lambda pair: pair[1]))


def _name(part: Value) -> str:
    """What a parameter or a field is called; "" for what is none."""
    label = part.data[0]
    known = isinstance(label, tuple) and len(label) == 3 and label[0] in ("param", "field")
    return str(label[2]) if known else ""
