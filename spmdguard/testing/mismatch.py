"""The error of a simulation in which the ranks did not make the same collectives in the same order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from spmdguard.errors import SpmdguardError
from spmdguard.format import name_ranks

Kind = Literal["different calls", "rank ended", "deadlock"]
_ADVICE = {
    "different calls": "make every rank of the group begin the same collectives in the same order, "
    "with the same root, shapes and types",
    "rank ended": "let the rank that ended reach this call, or let all ranks agree to leave before it",
    "deadlock": "order calls that wait for each other the same way on every rank",
}


class CollectiveMismatch(SpmdguardError, RuntimeError):
    """Ranks of a simulated world parted ways; on a real one this is a hang or a corrupt result.

    A ``RuntimeError`` because that is what torch.distributed raises where a collective fails.
    """

    def __init__(
        self,
        *,
        kind: Kind,
        title: str,
        group: str,
        calls: Mapping[int, str],
        doing: Mapping[int, str],
        missing: Iterable[int] = (),
    ) -> None:
        self.kind: Kind = kind
        self.title = title
        self.group = group
        self.calls = dict(calls)
        self.doing = dict(doing)
        self.missing = tuple(sorted(missing))

    def describe(self) -> dict[str, str]:
        joint = "\n         "
        others = {rank: text for rank, text in self.doing.items() if rank not in self.calls}
        return {
            "title": self.title,
            "saw": joint.join(_by_text(self.calls)) or "no rank in a collective",
            "where": joint.join([self.group, *_by_text(others)]),
            "do": _ADVICE[self.kind],
        }

    def again(self) -> CollectiveMismatch:
        """An equal error for another rank; one object raised in two threads would mix their tracebacks."""
        return type(self)(
            kind=self.kind,
            title=self.title,
            group=self.group,
            calls=self.calls,
            doing=self.doing,
            missing=self.missing,
        )


def _by_text(texts: Mapping[int, str]) -> list[str]:
    ranks: dict[str, list[int]] = {}
    for rank, text in sorted(texts.items()):
        ranks.setdefault(text, []).append(rank)
    return [f"{name_ranks(known)}: {text}" for text, known in ranks.items()]
