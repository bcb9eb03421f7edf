"""Where ranks part: compare, number by number, the collectives that each rank has begun in a group.

A group's collectives are numbered alike on every rank while the ranks are together. *Parting*: the first
number at which ranks began different operations, or that some began and others never did. Its *arms* are the
sets of ranks that did the same there. O(ranks x calls).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from spmdguard.watch.standing import Call, Place, Standing


@dataclass(frozen=True)
class Arm:
    """Ranks that did the same at a parting; ``operation`` is empty where they began nothing there."""

    ranks: tuple[int, ...]
    operation: str
    places: tuple[Place, ...]
    sizes: str = ""


@dataclass(frozen=True)
class Parting:
    """Where ranks of one group stopped calling the same collectives.

    Attributes:
        group: the group, described.
        number: of the collective.
        arms: what ranks did there, the fewest ranks first.
        before: the last collective that all of them began, and where, where it is known.
    """

    group: str
    number: int
    arms: tuple[Arm, ...]
    before: Call | None

    @property
    def minority(self) -> tuple[int, ...]:
        """The ranks that differ from most; all ranks where no side is larger."""
        sizes = [len(arm.ranks) for arm in self.arms]
        if sizes.count(max(sizes)) > 1:
            return tuple(sorted(rank for arm in self.arms for rank in arm.ranks))
        return tuple(sorted(rank for arm in self.arms if len(arm.ranks) < max(sizes) for rank in arm.ranks))


def find_parting(standings: Mapping[int, Standing]) -> Parting | None:
    """The earliest parting of any group; None where what is known of the ranks agrees."""
    found = [_parting_in(name, standings) for name in _group_names(standings)]
    known = [parting for parting in found if parting is not None]
    return min(known, key=lambda parting: _begins(parting, standings), default=None)


def find_mismatch(standings: Mapping[int, Standing], waiting: Mapping[int, Standing]) -> Parting | None:
    """What a process that was aborted in a collective, and the ranks that wait, say of a collective mismatch.

    gloo aborts a process that receives more than it expects, from a thread of its own: the partner is in another
    collective, or in the same one with a larger tensor. What the process had begun is lost with it, but not where it
    was. None where no rank was aborted in a collective, or the others wait at the very same place.
    """
    aborted = [
        each
        for each in standings.values()
        if each.state == "died" and each.failure == "SIGABRT" and each.operation
    ]
    others = [each for rank, each in waiting.items() if _last_call(each) is not None]
    where = {(each.operation, each.places) for each in aborted}
    if not aborted or all((each.operation, each.places) in where for each in others):
        return None
    first = _last_call(others[0])
    if first is None:
        return None
    group = others[0].find_group(first.group)
    arms: dict[tuple[str, tuple[Place, ...], str], list[int]] = {}
    for each in others:
        call = _last_call(each) or first
        arms.setdefault((call.operation, call.places, call.sizes), []).append(each.rank)
    dead = [
        Arm(tuple(sorted(each.rank for each in aborted if (each.operation, each.places) == key)), *key)
        for key in sorted(where, key=str)
    ]
    living = [
        Arm(tuple(sorted(ranks)), operation, places, sizes)
        for (operation, places, sizes), ranks in arms.items()
    ]
    label = group.describe() if group is not None else f"group {first.group!r}"
    return Parting(label, first.number, (*dead, *living), None)


def _last_call(standing: Standing) -> Call | None:
    """The collective that a waiting rank is in: the first that is not done, else the last."""
    calls = [call for call in standing.calls if not call.point_to_point]
    return next((call for call in calls if not call.done), calls[-1] if calls else None)


def _group_names(standings: Mapping[int, Standing]) -> list[str]:
    names = {call.group for each in standings.values() for call in each.calls if not call.point_to_point}
    return sorted(names | {group.name for each in standings.values() for group in each.groups})


def _begins(parting: Parting, standings: Mapping[int, Standing]) -> float:
    """When the first rank came to the parting."""
    members = {rank for arm in parting.arms for rank in arm.ranks}
    times = [
        call.began_s
        for each in standings.values()
        for call in each.calls
        if call.number == parting.number and each.rank in members
    ]
    return min(times, default=0.0)


def _parting_in(name: str, standings: Mapping[int, Standing]) -> Parting | None:
    known_groups = [found for each in standings.values() if (found := each.find_group(name)) is not None]
    group = max(known_groups, key=lambda found: len(found.members), default=None)  # some come without members
    ranks = set(group.ranks) if group is not None else set()
    members = [each for each in standings.values() if each.rank in ranks or each.find_group(name) is not None]
    calls = {each.rank: _numbered(each.calls, name) for each in members}
    if len(members) < 2 or not any(calls.values()):
        return None
    label = group.describe() if group is not None else f"group {name!r}"
    reached = {each.rank: _reached(each, calls[each.rank], name) for each in members}
    known = {rank: number for rank, number in reached.items() if number is not None}
    if not known:
        return None
    furthest, nearest = max(known.values()), min(known.values())
    first = max(min(numbers, default=0) for numbers in calls.values() if numbers)
    for number in range(first, nearest + 1):
        if len({calls[each.rank][number].operation for each in members if number in calls[each.rank]}) > 1:
            return Parting(label, number, _arms(members, calls, number), _common(calls, number - 1))
    if furthest == nearest:
        return None
    return Parting(label, nearest + 1, _arms(members, calls, nearest + 1), _common(calls, nearest))


def _numbered(calls: Iterable[Call], group: str) -> dict[int, Call]:
    """A group's collectives by number; of a number that several calls share, the first."""
    found: dict[int, Call] = {}
    for call in calls:
        if call.group == group and not call.point_to_point:
            found.setdefault(call.number, call)
    return found


def _reached(standing: Standing, calls: Mapping[int, Call], group: str) -> int | None:
    """The last number that a rank has begun."""
    numbers = [max(calls, default=None), standing.number_in(group)]
    return max((number for number in numbers if number is not None), default=None)


def _common(calls: Mapping[int, Mapping[int, Call]], number: int) -> Call | None:
    return next((of_rank[number] for of_rank in calls.values() if number in of_rank), None)


def _arms(
    members: Iterable[Standing], calls: Mapping[int, Mapping[int, Call]], number: int
) -> tuple[Arm, ...]:
    ranks: dict[tuple[str, tuple[Place, ...]], list[int]] = {}
    sizes: dict[tuple[str, tuple[Place, ...]], str] = {}
    for each in members:
        call = calls[each.rank].get(number)
        stands = () if each.state == "ended" else each.places
        key = ("", stands) if call is None else (call.operation, call.places)
        ranks.setdefault(key, []).append(each.rank)
        sizes.setdefault(key, "" if call is None else call.sizes)
    arms = [
        Arm(tuple(sorted(found)), operation, places, sizes[operation, places])
        for (operation, places), found in ranks.items()
    ]
    return tuple(sorted(arms, key=lambda arm: (len(arm.ranks), arm.ranks)))
