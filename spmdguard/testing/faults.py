"""What goes wrong in a simulated run, and where: planned before, so that a seed still decides everything."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Action = Literal["fail", "kill", "delay"]


@dataclass(frozen=True)
class Fault:
    """On ``rank``, at its ``nth`` operation called ``at`` (any operation where that is None)."""

    action: Action
    rank: int
    at: str | None
    nth: int
    error: BaseException | None = None
    num_turns: int = 0


class FaultPlan:
    """The faults of a world, by rank."""

    def __init__(self, num_ranks: int) -> None:
        self._num_ranks = num_ranks
        self._by_rank: dict[int, list[Fault]] = {}

    def __bool__(self) -> bool:
        return bool(self._by_rank)

    def add(self, fault: Fault) -> None:
        """Plan ``fault``.

        Raises:
            ValueError: there is no such rank, or ``nth`` or ``num_turns`` is below 1.
        """
        if not 0 <= fault.rank < self._num_ranks:
            raise ValueError(f"rank must be from 0 to {self._num_ranks - 1}, got {fault.rank!r}")
        if fault.nth < 1:
            raise ValueError(f"nth must be at least 1, got {fault.nth!r}; the first operation is 1")
        if fault.action == "delay" and fault.num_turns < 1:
            raise ValueError(f"turns must be at least 1, got {fault.num_turns!r}")
        self._by_rank.setdefault(fault.rank, []).append(fault)

    def find(self, rank: int, names: tuple[str, ...], counts: dict[str, int]) -> Fault | None:
        """Count one operation of ``rank``, known by ``names``; the fault planned for it."""
        planned = self._by_rank.get(rank)
        if planned is None:
            return None
        found = None
        for name in {*names, ""}:
            counts[name] = counts.get(name, 0) + 1
        for fault in planned:
            name = fault.at or ""
            if (name in names or not name) and counts[name] == fault.nth:
                found = found or fault
        return found
