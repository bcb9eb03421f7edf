"""The cells of the fault matrix: what strikes where on which ranks, and how every rank must end.

Three ranks. Rank 0 is the main one; ``main`` strikes rank 0, ``other`` rank 2, ``two`` both.

The criterion decides: in rank-local work (the prepare and publish phases of a checkpoint too) an error is
deferred, all ranks leave after the step, and it is raised where it happened and told on the main rank; in what
all ranks share it ends its rank at once, and the others lose their partner. After the last meeting of a run
(``destroy``, ``post_train``) no rank can learn of another's end any more.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

NUM_RANKS = 3
WHO = {"main": (0,), "other": (2,), "two": (0, 2)}
LOCAL = ("rank-local before", "rank-local after", "prepare", "publish")
SHARED = ("before first collective", "inside collective", "save", "close", "barrier")
LATE = ("destroy", "post_train")
PLACES = (
    *("before first collective", "rank-local before", "inside collective", "rank-local after"),
    *("prepare", "save", "publish", "close", "barrier", "destroy", "post_train"),
)
ERRORS = ("exception", "full disk", "read-only directory", "unpicklable", "two arguments")
KINDS = (
    *ERRORS,
    *("out of memory", "tracker down", "in a thread", "interrupt", "sys exit", "kill", "sigterm", "sigstop"),
)
_ON_MAIN_ONLY = ("prepare", "publish", "post_train")
_LEAVES_WITH = {"interrupt": 130, "sys exit": 3, "kill": -9}


class Cell(NamedTuple):
    """One fault."""

    kind: str
    place: str
    who: str

    @property
    def ranks(self) -> tuple[int, ...]:
        return WHO[self.who]

    @property
    def name(self) -> str:
        return f"{self.kind}, {self.place}, {self.who}".replace(" ", "_")

    @property
    def is_local(self) -> bool:
        """Whether the fault ends as a deferred error."""
        return self.kind == "tracker down" or self.place in LOCAL

    def codes(self) -> list[int]:
        """How each rank must end."""
        struck = self._struck_code()
        if self.kind in ("sigterm", "sigstop"):
            return [0] * NUM_RANKS
        if self.kind in _LEAVES_WITH and self.place not in LATE:
            return [struck if rank in self.ranks else 1 for rank in range(NUM_RANKS)]
        if self.place in LATE:
            return [struck if rank in self._really else 0 for rank in range(NUM_RANKS)]
        if self.is_local:
            return [1 if rank in (0, *self._really) else 0 for rank in range(NUM_RANKS)]
        return [struck if rank in self.ranks else 1 for rank in range(NUM_RANKS)]

    @property
    def _really(self) -> tuple[int, ...]:
        """Only the main rank has a tracker."""
        return (0,) if self.kind == "tracker down" else self.ranks

    def _struck_code(self) -> int:
        if self.kind in _LEAVES_WITH:
            return _LEAVES_WITH[self.kind]
        if self.kind == "in a thread":
            return 72
        return 73 if self.kind == "out of memory" and self.place not in LATE else 1

    def status(self) -> str | None:
        """What the tracker must hold; None where the main rank could not tell it any more."""
        codes = self.codes()
        if codes[0] == -9:
            return None
        if codes[0] == 130:
            return "KILLED"
        return "FINISHED" if codes[0] == 0 else "FAILED"

    def has_cause(self) -> bool:
        """Whether the fault has a text of its own that must come first on stderr."""
        return self.kind in (*ERRORS, "out of memory", "tracker down", "in a thread", "interrupt")


def exists(cell: Cell) -> bool:
    """Whether there is such a cell: three places, and the tracker, belong to the main rank alone."""
    if cell.place in _ON_MAIN_ONLY:
        return cell.who == "main"
    return not (cell.kind == "tracker down" and cell.who == "other")


CELLS = [cell for cell in itertools.starmap(Cell, itertools.product(KINDS, PLACES, WHO)) if exists(cell)]


def choose_quick() -> list[Cell]:
    """Every kind and every place at least once, in a fixed way."""
    chosen = []
    for number, kind in enumerate(KINDS):
        place = PLACES[(4 * number + 1) % len(PLACES)]
        fitting = [cell for cell in CELLS if (cell.kind, cell.place) == (kind, place)]
        chosen.append(fitting[number % len(fitting)])
    return chosen


QUICK = choose_quick()
