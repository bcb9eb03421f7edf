"""Ranks that the launcher started beyond the world: they leave before the others make the group without them.

Terminology: a *smaller world* is one that the program names itself (``init_process_group(world_size=n)``, or the
variable ``WORLD_SIZE`` set before), of as many ranks as stay behind a branch that sends the rest away. Numbers that are
not known are tried. Cost: linear in what follows the branch, for an exit under a condition on the rank alone.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from itertools import product

from ..values.evaluate import (
    UNKNOWN,
    Valuation,
    evaluate,
    is_computed,
    rank_constants,
    rank_dependent,
    truth,
    world_dependent,
)
from ..values.value import Value
from .judged import Candidate
from .nodes import Branch, Event, Jump, Tree, every_node
from .pointing import stands_at
from .terms import ABORT, END, Continuation, Reader

_WORLDS = (2, 3, 4)
_MAX_UNKNOWN = 2
_VARIABLE = "WORLD_SIZE"


def leaves_smaller_world(candidate: Candidate, node: Branch, quiet: Reader) -> bool:
    """Whether a branch sends away exactly the ranks that the group has no place for, and nothing came before."""
    if not rank_dependent(node.condition):
        return False
    away = [_ends(arm, candidate, quiet) for arm in (node.then, node.orelse)]
    if away[0] is away[1]:
        return False
    size = _size_named(candidate)
    return size is not None and _as_many_stay(node.condition, away[0], size)


def _ends(arm: Tree, candidate: Candidate, quiet: Reader) -> bool:
    last = arm[-1] if arm else None
    return (
        isinstance(last, Jump)
        and last.kind in ("exit", "return")
        and quiet.read(arm, candidate.k) in (END, ABORT)
    )


def _size_named(candidate: Candidate) -> Value | None:
    """The size of the group that is made behind the branch; None where it is the launcher's, or there is a group."""
    before, behind = _events_around(candidate)
    if any(event.name == "init" for event in before):
        return None
    of_variable: Value | None = None
    for event in behind:
        if event.name == "set-env" and event.args[0].data[0] == _VARIABLE:
            of_variable = event.args[1]
        elif event.name == "init":
            given = event.keywords.get("world_size") or (event.args[3] if len(event.args) > 3 else None)
            asks_variable = given is None or world_dependent(given)
            return of_variable if asks_variable and of_variable is not None else given
    return None


def _events_around(candidate: Candidate) -> tuple[list[Event], list[Event]]:
    """What comes before a branch and behind it, in the blocks around."""
    before: list[Event] = []
    behind: list[Event] = []
    inside: tuple[Tree, Continuation] | None = None
    for nodes, k in candidate.chain:
        index = stands_at(nodes, k, candidate.node, inside)
        if index is not None:
            before += _events(nodes[:index])
            behind += _events(nodes[index + 1 :])
        inside = nodes, k
    return before, behind


def _events(nodes: Tree) -> Iterator[Event]:
    return (one for one in every_node(nodes) if isinstance(one, Event) and one.name in ("init", "set-env"))


def _as_many_stay(condition: Value, leave_if: bool, size: Value) -> bool:
    """Whether the group has as many places as ranks stay, in some world, and no more in any."""
    worlds = [*_WORLDS, *(named + more for named in sorted(rank_constants(condition))[:2] for more in (1, 2))]
    found = False
    for world in worlds:
        unknown = [*dict.fromkeys((*_unknown(condition, world), *_unknown(size, world)))]
        if len(unknown) > _MAX_UNKNOWN:
            return False
        for numbers in product((1, 2, 3), repeat=len(unknown)):
            atoms = dict(zip(unknown, numbers, strict=True))
            ranks = [Valuation(rank, world, world, atoms) for rank in range(world)]
            stay = [truth(condition, at) is (not leave_if) for at in ranks]
            places = _number(evaluate(size, ranks[0]))
            if places is None or any(truth(condition, at) is None for at in ranks):
                return False
            if 0 < sum(stay) < world:
                if places > sum(stay):
                    return False
                found = found or places == sum(stay)
    return found


def _number(value: object) -> int | None:
    if isinstance(value, str) and value.isdecimal():
        return int(value)
    return value if isinstance(value, int) and value is not UNKNOWN else None


def _unknown(value: Value, world: int) -> Iterator[Hashable]:
    """The keys of the parts of a number that no rank and no world tells."""
    if evaluate(value, Valuation(0, world, world)) is not UNKNOWN:
        return
    if value.tag == "expr" and (is_computed(value.data[0]) or value.data[0] in ("str", "and", "or")):
        for operand in value.data[1]:
            yield from _unknown(operand, world)
    else:
        yield value.key
