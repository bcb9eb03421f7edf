"""A simulated rank: a thread that runs only while it holds the baton, and what is its own."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from spmdguard.current import PerProcess

if TYPE_CHECKING:
    from spmdguard.testing.processor import Processor

State = Literal["ready", "waiting", "ended", "killed"]


class RankKilled(BaseException):
    """Unwinds the thread of a killed rank after all others have ended; no ``except Exception`` sees it."""

    __spmdguard_written__ = True  # a process that was killed writes no error


@dataclass(frozen=True)
class Outcome:
    """How one simulated rank ended: a result, an error, or killed."""

    rank: int
    result: Any = None
    error: BaseException | None = None
    killed: bool = False

    @property
    def ok(self) -> bool:
        """Whether the rank returned."""
        return self.error is None and not self.killed


class SimulatedRank:
    """One rank of a world that is running."""

    def __init__(self, number: int, processor: Processor) -> None:
        self.number = number
        self.processor = processor
        self.lock = threading.Lock()
        self.lock.acquire()
        self.state: State = "ready"
        self.last: Any = None
        self.ending = ""
        self.waits_for: Any = None
        self.is_over = False
        self.values: dict[PerProcess[Any], Any] = {}
        self.counts: dict[str, int] = {}
        self.random_state: Any = None
        self.torch_world: Any = None
        self.works: set[Any] = set()
        self.num_polls = 0
        self.now_s = 0.0
        self.line_counts: dict[int, int] = {}
        self.num_groups = 0
        self.result: Any = None
        self.error: BaseException | None = None

    def doing(self) -> str:
        """What it does now, for a message."""
        if self.ending:
            return self.ending
        if self.last is None:
            return "has not begun a collective"
        if self.state == "waiting" and self.waits_for is not None:
            own = [call for call in self.waits_for.begun() if call.rank is self]
            return f"waits in {own[0] if own else self.last}"
        return f"runs; last began {self.last}"

    def outcome(self) -> Outcome:
        """How it ended."""
        return Outcome(self.number, self.result, self.error, self.state == "killed")


class _Thread(threading.local):
    rank: SimulatedRank | None = None
    is_helper = False


thread = _Thread()


def refuse_other_threads(me: SimulatedRank, operation: str) -> None:
    """Raise where the calling thread is not the one that hands the baton on for ``me``."""
    if thread.rank is not me or thread.is_helper:
        raise RuntimeError(
            f"{operation} was begun on a helper thread of simulated rank {me.number}; SimulatedWorld "
            "simulates operations of the rank's own thread only"
        )
