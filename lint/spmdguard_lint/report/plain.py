"""The formats for machines and for one line a finding: ``concise``, ``json``, ``github``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from spmdguard_lint.model import Finding, Fix, Location
from spmdguard_lint.report.style import Style, printable
from spmdguard_lint.rules import registry

_GITHUB_LEVELS = {"error": "error", "warning": "warning", "info": "notice"}


def concise(finding: Finding, style: Style) -> str:
    """``file:row:column: CODE message``."""
    start = finding.site.start
    place = f"{style.paint(printable(finding.site.filename), 'bold')}:{start.row}:{start.column}:"
    return f"{place} {style.paint(finding.code, finding.severity, 'bold')} {printable(finding.message)}"


def github(finding: Finding) -> str:
    """A GitHub Actions workflow command, which shows the finding on its line of a pull request."""
    site = finding.site
    properties = {
        "title": f"spmdguard ({finding.code})",
        "file": site.filename,
        "line": site.start.row,
        "col": site.start.column,
        "endLine": site.end.row,
        "endColumn": site.end.column,
    }
    listed = ",".join(f"{key}={_escaped(str(value), ':,')}" for key, value in properties.items())
    text = f"{site.filename}:{site.start.row}:{site.start.column}: {finding.code} {finding.message}"
    return f"::{_GITHUB_LEVELS[finding.severity]} {listed}::{_escaped(text)}"


def _escaped(text: str, more: str = "") -> str:
    for character in "%\r\n" + more:
        text = text.replace(character, f"%{ord(character):02X}")
    return text


def json_array(findings: Iterable[Finding]) -> Iterator[str]:
    """The findings as a JSON array, one object a line."""
    separator = "[\n  "
    for finding in findings:
        yield separator + json.dumps(as_dict(finding))
        separator = ",\n  "
    yield "[]\n" if separator.startswith("[") else "\n]\n"


def as_dict(finding: Finding) -> dict[str, Any]:
    """One finding, with ruff's field names where ruff has one."""
    return {
        "code": finding.code,
        "name": finding.name,
        "severity": finding.severity,
        "certainty": finding.certainty,
        "message": finding.message,
        "help": finding.help,
        "filename": finding.site.filename,
        "location": _location(finding.site.start),
        "end_location": _location(finding.site.end),
        "trail": [
            {
                "filename": step.site.filename,
                "location": _location(step.site.start),
                "message": step.message,
            }
            for step in finding.trail
        ],
        "traces": {"diverging": list(finding.diverging), "others": list(finding.others)},
        "fix": _fix(finding.fix) if finding.fix else None,
        "url": registry.url_of(finding.code),
    }


def _location(location: Location) -> dict[str, int]:
    return {"row": location.row, "column": location.column}


def _fix(fix: Fix) -> dict[str, Any]:
    edits = [
        {
            "content": edit.content,
            "location": _location(edit.site.start),
            "end_location": _location(edit.site.end),
        }
        for edit in fix.edits
    ]
    return {"applicability": fix.applicability, "message": fix.message, "edits": edits}
