"""What goes wrong in a simulated run, and where: planned before, so that a seed still decides everything."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal

Action = Literal["fail", "kill", "delay", "signal", "advance"]


@dataclass(frozen=True)
class Fault:
    """On ``rank``, at its ``nth`` operation called ``at`` (any operation where that is None).

    ``at`` may also be a line, ``"train.py:42"``: when the rank is about to run it for the ``nth`` time.
    """

    action: Action
    rank: int
    at: str | None
    nth: int
    error: BaseException | None = None
    num_turns: int = 0
    signal: int = 0
    seconds: float = 0.0

    def __str__(self) -> str:
        at = "" if self.at is None else f", at={self.at!r}"
        return f"{self.action}({self.rank}{at}, nth={self.nth})"

    @property
    def line(self) -> tuple[str, int] | None:
        """The end of the file's path, and the line, where ``at`` is one."""
        name, _, number = (self.at or "").rpartition(":")
        return (name, int(number)) if name and number.isdigit() else None


class FaultPlan:
    """The faults of a world, by rank."""

    def __init__(self, num_ranks: int) -> None:
        self._num_ranks = num_ranks
        self._by_rank: dict[int, list[Fault]] = {}
        self._lines: dict[int, list[Fault]] = {}
        self.planned = False
        self._all: list[Fault] = []

    def add(self, fault: Fault) -> None:
        """Plan ``fault``.

        Raises:
            ValueError: there is no such rank, or ``nth``, ``num_turns`` or ``seconds`` is out of range.
        """
        if not 0 <= fault.rank < self._num_ranks:
            raise ValueError(f"rank must be from 0 to {self._num_ranks - 1}, got {fault.rank!r}")
        if fault.nth < 1:
            raise ValueError(f"nth must be at least 1, got {fault.nth!r}; the first operation is 1")
        if fault.action == "delay" and fault.num_turns < 1:
            raise ValueError(f"turns must be at least 1, got {fault.num_turns!r}")
        if fault.action == "advance" and not fault.seconds > 0:
            raise ValueError(f"seconds must be positive, got {fault.seconds!r}; a clock goes forward")
        self.planned = True
        self._all.append(fault)
        if fault.line is not None:
            self._lines.setdefault(fault.rank, []).append(fault)
        else:
            self._by_rank.setdefault(fault.rank, []).append(fault)

    def not_among(self, struck: Collection[int]) -> list[Fault]:
        """The faults whose ``id`` is not in ``struck``."""
        return [fault for fault in self._all if id(fault) not in struck]

    def at_lines(self, rank: int) -> list[Fault]:
        """The faults planned for lines of code on ``rank``."""
        return self._lines.get(rank, [])

    def find(self, rank: int, names: tuple[str, ...], counts: dict[str, int]) -> list[Fault]:
        """Count one operation of ``rank``, known by ``names``; the faults planned for it, in that order."""
        planned = self._by_rank.get(rank)
        if planned is None:
            return []
        found = []
        for name in {*names, ""}:
            counts[name] = counts.get(name, 0) + 1
        for fault in planned:
            name = fault.at or ""
            if (name in names or not name) and counts[name] == fault.nth:
                found.append(fault)
        return found


def describe_missed(fault: Fault, counts: Mapping[str, int]) -> str:
    """What to say of a fault that did not strike in a run that ended well; ``counts`` of its rank's operations."""
    text = f"the fault {fault} has not struck: rank {fault.rank} "
    if fault.line is not None:
        return f"{text}has not come to that line so often; `at` is the end of the file's path, and a line with code"
    if fault.at is None or fault.at in counts:
        return f"{text}has come there {counts.get(fault.at or '', 0)} times"
    known = ", ".join(f"{name!r} ({number})" for name, number in sorted(counts.items()) if name)
    return (
        f'{text}has begun {known or "no operation"}; of a function of yours name a line, `at="train.py:42"`, '
        f"or call fault_point({fault.at!r}) in it"
    )
