"""Write a run's findings in the format asked for."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

from spmdguard_lint.model import Finding
from spmdguard_lint.report.style import Style
from spmdguard_lint.report.summary import Counts, notes, statistics, statistics_lines, summary
from spmdguard_lint.source.reading import SourceFile

FORMATS = ("full", "concise", "json", "github")
Write = Callable[[str], object]


def write_findings(
    findings: Sequence[Finding],
    sources: Mapping[str, SourceFile],
    output_format: str,
    style: Style,
    write: Write,
) -> None:
    """Every finding, in order."""
    if output_format == "full":
        from spmdguard_lint.report.full import full

        for finding in findings:
            write("\n".join(full(finding, sources, style)) + "\n\n")
        return
    from spmdguard_lint.report.plain import concise, github, json_array

    if output_format == "json":
        for piece in json_array(findings):
            write(piece)
    elif output_format == "github":
        for finding in findings:
            write(github(finding) + "\n")
    else:
        for finding in findings:
            write(concise(finding, style) + "\n")


def write_statistics(findings: Sequence[Finding], output_format: str, style: Style, write: Write) -> None:
    """The counts by rule in place of the findings."""
    if output_format == "json":
        write(json.dumps(statistics(findings), indent=2) + "\n")
    else:
        for line in statistics_lines(findings, style):
            write(line + "\n")


def write_summary(
    findings: Sequence[Finding], counts: Counts, output_format: str, style: Style, write: Write
) -> None:
    """The last lines; formats for machines have none."""
    if output_format in ("full", "concise"):
        for line in notes(findings, counts):
            write(style.paint(line, "dim") + "\n")
        write(summary(findings, counts, style) + "\n")
