"""Why a run ends: the first cause, as one note that every rank finds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from spmdguard.format import escape_text
from spmdguard.watch.standing import parse_ranks

MAX_TEXT = 2_000
MAX_REPORT = 20_000
FAILED = "failed"
STALLED = "stalled"


@dataclass(frozen=True)
class Cause:
    """The first cause.

    Attributes:
        kind: ``"failed"``, where a rank left with an error; ``"stalled"``, where a report was made.
        ranks: the ranks that are the cause, as ranges.
        title: one line that says it.
        report: the full report of a stall, for the rank that shows it.
    """

    kind: str
    ranks: str
    title: str
    report: str = ""

    def to_note(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "ranks": self.ranks,
            "title": self.title[:MAX_TEXT],
            "report": self.report[:MAX_REPORT],
        }

    def concerns(self, rank: int) -> bool:
        """Whether a rank is the cause itself."""
        return rank in parse_ranks(self.ranks)


def read_cause(note: Mapping[str, Any] | None) -> Cause | None:
    """The cause in a note from anybody; None where there is none, or something else."""
    if note is None:
        return None
    kind, ranks, title, report = (note.get(name, "") for name in ("kind", "ranks", "title", "report"))
    if kind not in (FAILED, STALLED) or not all(isinstance(each, str) for each in (ranks, title, report)):
        return None
    try:
        parse_ranks(ranks)
    except ValueError:
        return None
    lines = [escape_text(line, 400) for line in report[:MAX_REPORT].split("\n")[:60]]
    return Cause(kind, ranks, escape_text(title, MAX_TEXT), "\n".join(lines))
