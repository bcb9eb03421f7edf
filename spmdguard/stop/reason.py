"""Why ranks stopped, the same on every rank."""

from __future__ import annotations

from dataclasses import dataclass

from spmdguard.format import name_ranks


@dataclass(frozen=True)
class StopReason:
    """Why the ranks agreed to stop: the text of each rank that asked, and the call that agreed.

    SPMD:
        Rank-local: plain data.
        Called by: any rank.
        Result: rank-invariant; every rank holds the same texts.
        Raises on: no rank.
    """

    texts: dict[int, str]
    call: int

    @property
    def ranks(self) -> tuple[int, ...]:
        """The ranks that asked to stop, ascending."""
        return tuple(sorted(self.texts))

    def __str__(self) -> str:
        """Each different text once, with the ranks that gave it."""
        by_text: dict[str, list[int]] = {}
        for rank in self.ranks:
            by_text.setdefault(self.texts[rank], []).append(rank)
        shown = [f"{name_ranks(ranks)}: {text}" for text, ranks in by_text.items()]
        more = len(shown) - _NUM_SHOWN
        return "; ".join(shown[:_NUM_SHOWN]) + (f"; and {more} more" if more > 0 else "")


_NUM_SHOWN = 4
