"""How long a rank may wait before the run counts as stalled: given, or learned from what was observed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from spmdguard.phases import SAVE
from spmdguard.watch.standing import Place, Standing

FIRST = "first steps"
TRAINING = "training"
EVALUATION = "evaluation"
_SAVING_WORDS = ("save", "checkpoint")
_EVALUATION_WORDS = ("eval", "valid", "test_loop", "predict", "generate")
NUM_FIRST = 20


@dataclass
class Limits:
    """Seconds that a wait may take, by kind of work.

    Attributes:
        given_s: the limit that the user gave; it holds for everything.
        first_s: before ``NUM_FIRST`` waits of any kind were seen, and for a kind never seen to end.
        least_s: no learned limit is below it.
        factor: times the longest wait that was seen to end.
    """

    given_s: float | None = None
    first_s: float = 900.0
    least_s: float = 120.0
    factor: float = 8.0
    longest_s: dict[str, float] = field(default_factory=dict)
    num_waits: int = 0

    def observe(self, kind: str, waited_s: float) -> None:
        """A wait ended well."""
        self.num_waits += 1
        known = FIRST if self.num_waits <= NUM_FIRST else kind
        self.longest_s[known] = max(waited_s, self.longest_s.get(known, 0.0))

    def limit_s(self, kind: str) -> float:
        """How long a wait of this kind may take now."""
        if self.given_s is not None:
            return self.given_s
        if self.num_waits < NUM_FIRST or (kind != TRAINING and kind not in self.longest_s):
            return self.first_s
        return max(self.least_s, self.factor * self.longest_s.get(kind, 0.0))


def kind_of(phases: Iterable[str], places: Iterable[Place]) -> str:
    """What a rank is doing: an open phase says it, else the names of the functions that it is in."""
    named = list(phases)
    if named:
        return named[0]
    names = [place.function.lower() for place in places]
    if any(word in name for name in names for word in _SAVING_WORDS):
        return SAVE
    if any(word in name for name in names for word in _EVALUATION_WORDS):
        return EVALUATION
    return TRAINING


def limit_for(limits: Limits, standings: Iterable[Standing]) -> float:
    """The limit of a wait, where one rank's work decides: the longest that the work of any rank allows."""
    kinds = {kind_of(each.phases, each.places) for each in standings}
    return max((limits.limit_s(kind) for kind in kinds), default=limits.limit_s(TRAINING))
