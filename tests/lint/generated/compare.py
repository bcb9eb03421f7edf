"""The linter's answer beside the oracle's: found, missed, clean, false alarm.

Reports of rules that speak of something else than ranks parting ways (launch, checkpoint, meta) do not
count, neither as found nor as false. Rules that warn of an exception which *may* happen (``POLICY``) are
right by their own terms where a generated program raises nothing of the kind: an alarm of such a rule alone
is counted apart, because the fragment has no implicitly failing operations. So is an alarm on a line that no
rank reaches in any setting (a *dead* alarm): nothing happens there, but nobody would write it either.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.lint.generated.oracle import Outcome, judge, reached

POLICY = frozenset({"SPG201", "SPG202", "SPG203", "SPG204", "SPG206"})
OTHER = frozenset({"SPG603", "SPG604", "SPG605", "SPG606", "SPG607", "SPG608"})


class Report(NamedTuple):
    """What a linter says of a program: rule and line."""

    code: str
    row: int


Linter = Callable[[str], Sequence[Report]]


def spmdguard_linter(source: str) -> list[Report]:
    """The linter under test, in this process, with its default selection."""
    from spmdguard_lint.config import Config
    from spmdguard_lint.engine import StandardInput, lint

    result = lint((), Config(), stdin=StandardInput(source.encode(), "generated.py"))
    return [Report(finding.code, finding.site.start.row) for finding in result.findings]


def silent_linter(source: str) -> list[Report]:
    """Reports nothing: the comparison must show that it misses."""
    return []


def noisy_linter(source: str) -> list[Report]:
    """Reports always: the comparison must show false alarms."""
    return [Report("SPG101", 1)]


def counting(reports: Iterable[Report]) -> list[Report]:
    """The reports that say ranks part ways."""
    return [r for r in reports if r.code[3] in "12346" and r.code not in OTHER]


def kind_of(source: str, outcome: Outcome, reports: Sequence[Report]) -> str:
    """How the two answers compare."""
    said = counting(reports)
    if said and outcome.verdict == "match":
        lines = reached(source)
        said = [r for r in said if r.row in lines]
        if not said:
            return "dead alarm"
    certain = [r for r in said if r.code not in POLICY]
    if outcome.verdict == "invalid":
        return "invalid"
    if outcome.verdict == "mismatch":
        return "found" if certain else "found by policy" if said else "missed"
    if outcome.verdict == "grey":
        return "grey, reported" if said else "grey"
    return "false alarm" if certain else "policy alarm" if said else "clean"


@dataclass
class Tally:
    """Figures of a run; ``examples`` holds the places of programs by kind."""

    kinds: Counter[str] = field(default_factory=Counter)
    codes: Counter[str] = field(default_factory=Counter)  # of alarms without a mismatch
    examples: dict[str, list[int]] = field(default_factory=dict)

    def add(self, index: int, kind: str, reports: Sequence[Report]) -> None:
        self.kinds[kind] += 1
        if kind not in ("clean", "found", "grey"):
            self.examples.setdefault(kind, []).append(index)
        if kind in ("false alarm", "policy alarm"):
            self.codes.update({r.code for r in counting(reports)})

    def merge(self, other: Tally) -> None:
        self.kinds.update(other.kinds)
        self.codes.update(other.codes)
        for kind, places in other.examples.items():
            self.examples.setdefault(kind, []).extend(places)

    @property
    def missed(self) -> int:
        return self.kinds["missed"]

    @property
    def num_mismatches(self) -> int:
        return self.kinds["found"] + self.kinds["found by policy"] + self.kinds["missed"]

    @property
    def false_share(self) -> float:
        """Alarms without a mismatch, as a share of the programs whose ranks match."""
        matching = sum(self.kinds[kind] for kind in ("clean", "false alarm", "policy alarm", "dead alarm"))
        return self.kinds["false alarm"] / matching if matching else 0.0

    def text(self) -> str:
        lines = [f"{sum(self.kinds.values())} programs, {self.num_mismatches} with a mismatch"]
        lines += [f"  {kind:16} {count}" for kind, count in sorted(self.kinds.items())]
        lines.append(
            f"missed {self.missed}; alarms without a mismatch {100 * self.false_share:.2f} % of matching"
        )
        if self.codes:
            lines.append("  by rule: " + ", ".join(f"{c} {n}" for c, n in self.codes.most_common()))
        return "\n".join(lines)


def compare(sources: Iterable[tuple[int, str]], linter: Linter) -> Tally:
    """Judge and lint every program."""
    tally = Tally()
    for index, source in sources:
        reports = linter(source)
        tally.add(index, kind_of(source, judge(source), reports), reports)
    return tally
