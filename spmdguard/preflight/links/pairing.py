"""Who meets whom: rounds of disjoint pairs.

Terminology: a *round* is a set of disjoint pairs that exchange at the same time. Up to ``MAX_ALL_PAIRS`` members every
pair meets once, by the circle method: n - 1 rounds. Above it each member meets those whose number differs in one bit:
log2(n) rounds, in which each still meets several others, so that a bad member is told from a bad link.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["MAX_ALL_PAIRS", "make_rounds"]

MAX_ALL_PAIRS = 32


def make_rounds(members: Sequence[int]) -> list[list[tuple[int, int]]]:
    """Rounds of pairs of ``members``, the smaller one first in each."""
    if len(members) <= MAX_ALL_PAIRS:
        return _all_pairs(members)
    return _by_bits(members)


def _all_pairs(members: Sequence[int]) -> list[list[tuple[int, int]]]:
    circle: list[int | None] = [*members, *([None] if len(members) % 2 else [])]
    rounds = []
    for _ in range(len(circle) - 1):
        half = len(circle) // 2
        pairs = zip(circle[:half], reversed(circle[half:]), strict=True)
        rounds.append([(min(a, b), max(a, b)) for a, b in pairs if a is not None and b is not None])
        circle = [circle[0], circle[-1], *circle[1:-1]]
    return rounds


def _by_bits(members: Sequence[int]) -> list[list[tuple[int, int]]]:
    rounds = []
    for bit in range((len(members) - 1).bit_length()):
        distance = 1 << bit
        numbers = [i for i in range(len(members)) if not i & distance and i | distance < len(members)]
        rounds.append([(members[i], members[i | distance]) for i in numbers])
    return rounds
