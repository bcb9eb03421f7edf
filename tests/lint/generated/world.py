"""What one rank sees of the world while a generated script runs: its events and the results it is given.

Terminology: an *event* is one collective call of one rank. A rank is run alone, from start to end; the
result of a collective is taken from ``known`` where the true result has been computed, and *guessed* from
the rank's own contribution otherwise. ``oracle`` checks the guesses and runs a rank again if one was wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

MAX_EVENTS = 400

Detail = int | str
Group = tuple[Any, ...]  # (ordinal of the new_group call, member ranks); ordinal 0 is the default group


class OutOfBudget(BaseException):
    """The script made more collective calls, or ran longer, than any generated script may."""


class ProgramError(BaseException):
    """The script broke a rule of the real library; no handler of the script may hide that."""


@dataclass(slots=True)
class Event:
    """One collective call of one rank; ``result`` is what the rank was told."""

    op: str
    group: Group
    detail: Detail  # the root, or how to reduce: must agree, but nobody waits where it does not
    contribution: Any
    result: Any


@dataclass(slots=True)
class Rank:
    """One rank's run: identity, inputs of the job, results known so far, events made."""

    rank: int
    world: int
    mode: str = "fast"
    argv: tuple[str, ...] = ("train.py",)
    known: list[Any] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    ending: str = ""
    num_groups: int = 0
    num_draws: int = 0
    alive: bool = False
    disagrees: bool = False  # took part in a collective whose members gave different details

    def restart(self, known: list[Any]) -> None:
        """Forget the run, keep the identity; ``known`` are the true results of its first events."""
        self.known, self.events, self.ending = known, [], ""
        self.num_groups = self.num_draws = 0
        self.alive = self.disagrees = False

    @property
    def everyone(self) -> Group:
        return (0, *range(self.world))

    def collective(self, op: str, group: Group | None, contribution: Any, detail: Detail = 0) -> Any:
        """Record a collective and return its result; a non-member's call does nothing, as in torch."""
        if not self.alive:
            raise ProgramError("Default process group has not been initialized")
        where = self.everyone if group is None else group
        if self.rank not in where[1:]:
            return None
        index = len(self.events)
        if index >= MAX_EVENTS:
            raise OutOfBudget
        if index < len(self.known):
            result = self.known[index]
        else:
            members = where[1:]
            result = combine(op, [contribution] * len(members), members, detail)[members.index(self.rank)]
        self.events.append(Event(op, where, detail, contribution, result))
        return result


def combine(op: str, contributions: list[Any], members: tuple[int, ...], detail: Detail) -> list[Any]:
    """The true result of one collective for each member, from what each contributed."""
    rule = RESULTS.get(op)
    if rule is None:
        return [None] * len(members)
    if isinstance(detail, str):
        return rule(contributions, detail)
    return rule(contributions, members.index(detail) if detail in members else 0)


def _all_reduce(contributions: list[Any], operator: Any) -> list[Any]:
    pick = OPERATORS[operator]
    return [[pick(column) for column in zip(*contributions, strict=False)]] * len(contributions)


def _reduce_to_root(contributions: list[Any], root: Any) -> list[Any]:
    value = [sum(column) for column in zip(*contributions, strict=False)]
    return [value if place == root else own for place, own in enumerate(contributions)]


def _broadcast(contributions: list[Any], root: Any) -> list[Any]:
    return [contributions[root]] * len(contributions)


def _all_gather(contributions: list[Any], root: Any) -> list[Any]:
    return [list(contributions)] * len(contributions)


def _gather(contributions: list[Any], root: Any) -> list[Any]:
    return [list(contributions) if place == root else None for place in range(len(contributions))]


def _scatter(contributions: list[Any], root: Any) -> list[Any]:
    parts = contributions[root] or [0] * len(contributions)
    return [parts[place] if place < len(parts) else 0 for place in range(len(contributions))]


OPERATORS: dict[str, Callable[[Any], Any]] = {"sum": sum, "max": max, "min": min}
RESULTS: dict[str, Callable[[list[Any], Any], list[Any]]] = {
    "all_reduce": _all_reduce,
    "reduce": _reduce_to_root,
    "broadcast": _broadcast,
    "broadcast_object_list": _broadcast,
    "all_gather": _all_gather,
    "all_gather_object": _all_gather,
    "gather_object": _gather,
    "scatter_object_list": _scatter,
}
