"""The last line of a report, and the counts by rule (``--statistics``)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from spmdguard_lint.model import Finding, Severity
from spmdguard_lint.report.style import Style
from spmdguard_lint.rules import registry

_SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")


def summary(findings: Sequence[Finding], num_files: int, num_suppressed: int, style: Style) -> str:
    """What was found, in how many files."""
    looked = f"{_count(num_files, 'file')} checked"
    silenced = f", {num_suppressed:,} suppressed" if num_suppressed else ""
    if not findings:
        return style.paint(f"No findings: {looked}{silenced}.", "green", "bold")
    counts = Counter(finding.severity for finding in findings)
    shown = [
        style.paint(_count(counts[severity], severity), severity, "bold")
        for severity in _SEVERITIES
        if counts[severity]
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
