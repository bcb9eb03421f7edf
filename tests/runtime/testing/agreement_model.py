"""What deferral, agreement and refusal should do on N ranks, in plain Python: the model beside the real thing.

Terms: an *action* is one call that every rank makes; its *answers* are what each rank gets: a value, or the
name of the error that is raised. A rank is *broken* after a collective failed on it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

Answers = list[str]
BROKEN, MISSING = "CommunicationBroken", "RanksMissing"


@dataclass
class Pending:
    """An agreement begun in the background: who asked, and whether every rank had come."""

    askers: set[int]
    complete: bool


@dataclass
class Model:
    """All ranks at once."""

    num_ranks: int
    first: dict[int, str] = field(default_factory=dict)
    num_later: dict[int, int] = field(default_factory=dict)
    told: set[int] = field(default_factory=set)
    broken: set[int] = field(default_factory=set)
    calls: dict[int, int] = field(default_factory=dict)
    pending: Pending | None = None
    reason: list[int] | None = None

    @property
    def healthy(self) -> list[int]:
        return [rank for rank in range(self.num_ranks) if rank not in self.broken]

    def defer(self, failing: set[int], label: str) -> Answers:
        """Rank-local work that fails on some ranks."""
        for rank in failing:
            if rank in self.first:
                self.num_later[rank] = self.num_later.get(rank, 0) + 1
            else:
                self.first[rank] = label
        return ["None" if rank in failing else "'done'" for rank in range(self.num_ranks)]

    def tell(self, ranks: set[int]) -> Answers:
        """A signal or a time limit reaches some ranks: they ask for a stop from now on."""
        self.told |= ranks
        return ["None"] * self.num_ranks

    def take(self) -> Answers:
        """Re-raise and clear: the first error, and how many came later."""
        answers = [
            f"{self.first[rank]} +{self.num_later.get(rank, 0)}" if rank in self.first else "None"
            for rank in range(self.num_ranks)
        ]
        self.first.clear()
        self.num_later.clear()
        return answers

    def collective(self, failing: set[int]) -> Answers:
        """A guarded collective that fails on some ranks without waiting for others."""
        answers = [
            BROKEN if rank in self.broken else "RuntimeError" if rank in failing else "'reduced'"
            for rank in range(self.num_ranks)
        ]
        self.broken |= failing
        return answers

    def meet(self) -> Answers:
        """A barrier: where one rank is broken, the healthy ones wait in vain."""
        return self._answer("None") if not self.broken else self._lose()

    def resume(self) -> Answers:
        """Without a new group nothing opens the latch."""
        return self._answer("None")

    def sync(self, asked: list[bool | None], every: int, overlap: bool) -> Answers:
        """``sync_should_stop``."""
        if not self.healthy:
            return self._answer("")
        self.calls[every] = self.calls.get(every, 0) + 1
        if self.calls[every] % every:
            return self._answer("False")
        askers = {
            rank
            for rank, wish in enumerate(asked)
            if (wish or rank in self.first or rank in self.told) and rank not in self.broken
        }
        pending, self.pending = self.pending, None
        if pending is not None:
            if not pending.complete:
                return self._lose()
            if pending.askers:
                return self._agree(pending.askers | askers)
        if overlap:
            self.pending = Pending(askers, not self.broken)
            return self._answer("False")
        if self.broken:
            return self._lose()
        return self._agree(askers) if askers else self._answer("False")

    def _agree(self, askers: set[int]) -> Answers:
        """A true verdict is followed by an exchange of texts, in which a broken rank is missing."""
        if self.broken:
            return self._lose()
        self.reason = sorted(askers)
        return self._answer("True")

    def _answer(self, healthy: str) -> Answers:
        return [BROKEN if rank in self.broken else healthy for rank in range(self.num_ranks)]

    def _lose(self) -> Answers:
        answers = self._answer(MISSING)
        self.broken = set(range(self.num_ranks))
        return answers
