"""The ``full`` format: message, code frame with trail, two columns, help, page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from spmdguard_lint.model import Finding
from spmdguard_lint.report.columns import columns
from spmdguard_lint.report.frame import frame
from spmdguard_lint.report.style import Style, printable, wrapped
from spmdguard_lint.rules import registry
from spmdguard_lint.source.reading import SourceFile


def full(finding: Finding, sources: Mapping[str, SourceFile], style: Style) -> Iterator[str]:
    """The lines of one finding's report."""
    head = f"{finding.severity}[{finding.code}]"
    lines = wrapped(printable(finding.message), max(style.width - len(head) - 2, 16))
    yield f"{style.paint(head, finding.severity, 'bold')}: {style.paint(lines[0], 'bold')}"
    for line in lines[1:]:
        yield " " * (len(head) + 2) + style.paint(line, "bold")
    yield from frame(finding, sources, style)
    table = list(columns(finding.diverging, finding.others, 2, style))
    if table:
        yield ""
        yield from table
    yield ""
    yield from _note("help", finding.help, "green", style)
    yield f"  {style.paint('rule:', 'dim')} {style.paint(registry.url_of(finding.code), 'dim')}"


def _note(title: str, text: str, colour: str, style: Style) -> Iterator[str]:
    lines = wrapped(printable(text), max(style.width - len(title) - 4, 16))
    yield f"  {style.paint(title + ':', colour, 'bold')} {lines[0]}"
    for line in lines[1:]:
        yield " " * (len(title) + 4) + line
