"""The last line of a report, and the counts by rule (``--statistics``)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from spmdguard_lint.model import Applicability, Finding, Severity
from spmdguard_lint.report.style import Style
from spmdguard_lint.rules import registry

_SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")


@dataclass(frozen=True)
class Counts:
    """What a run counted besides its findings; ``num_advice`` by code, what only a selection by name shows.

    ``tried``: the fixes that the run tried to apply; ``refused``: findings whose fix it undid.
    """

    num_files: int
    num_suppressed: int = 0
    num_advice: Mapping[str, int] = field(default_factory=dict)
    tried: Applicability | None = None
    refused: tuple[Finding, ...] = ()


def notes(findings: Sequence[Finding], counts: Counts) -> Iterator[str]:
    """What there is besides: advice that is not shown, and fixes that there may be."""
    if counts.num_advice:
        listed = ", ".join(
            f"{num:,} {registry.title(code)}" for code, num in sorted(counts.num_advice.items())
        )
        selected = ",".join(sorted(counts.num_advice))
        yield f"Not shown, because it is advice: {listed}; `--extend-select {selected}` shows it."
    if counts.tried == "unsafe":
        return
    rules = [registry.rule_for(finding.code) for finding in findings if finding not in counts.refused]
    kinds = Counter(info.fix for info in rules if info is not None and info.fix is not None)
    if kinds:
        option = " ".join(["--diff", *(["--unsafe-fixes"] if kinds["unsafe"] or counts.tried else [])])
        yield f"{_count(kinds.total(), 'finding')} may have a fix: `{option}` shows it."


def summary(findings: Sequence[Finding], counts: Counts, style: Style) -> str:
    """What was found, in how many files."""
    looked = f"{_count(counts.num_files, 'file')} checked"
    silenced = f", {counts.num_suppressed:,} suppressed" if counts.num_suppressed else ""
    if not findings:
        return style.paint(f"No findings: {looked}{silenced}.", "green", "bold")
    severities = Counter(finding.severity for finding in findings)
    shown = [
        style.paint(_count(severities[severity], severity), severity, "bold")
        for severity in _SEVERITIES
        if severities[severity]
    ]
    num_hit = len({finding.site.filename for finding in findings})
    return f"Found {', '.join(shown)} in {_count(num_hit, 'file')}; {looked}{silenced}."


def statistics(findings: Sequence[Finding]) -> list[dict[str, object]]:
    """How often each rule was found, most often first."""
    counts = Counter(finding.code for finding in findings)
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [{"code": code, "name": registry.codes().get(code, ""), "count": count} for code, count in ordered]


def statistics_lines(findings: Sequence[Finding], style: Style) -> Iterator[str]:
    """``statistics`` for reading."""
    for row in statistics(findings):
        yield f"{row['count']:>6}  {style.paint(str(row['code']), 'bold')}  {row['name']}"


def _count(num: int, noun: str) -> str:
    return f"{num:,} {noun}" + ("" if num == 1 or noun == "info" else "s")
