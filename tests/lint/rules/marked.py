"""Snippets whose expected reports stand in them: a line ending in ``# SPG601`` is reported with that code."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping

from spmdguard_lint.config import Config
from spmdguard_lint.engine import StandardInput, lint

Reports = list[tuple[int, str]]


def expected(source: str) -> Reports:
    """The reports that a snippet's own comments announce."""
    lines = textwrap.dedent(source).splitlines()
    return [(row, code) for row, line in enumerate(lines, 1) for code in re.findall(r"# (SPG\d{3})", line)]


def reported(source: str, *codes: str) -> Reports:
    """The reports of some rules on a snippet."""
    content = textwrap.dedent(source).encode()
    result = lint([], Config(select=codes), stdin=StandardInput(content, "snippet.py"))
    return sorted((finding.site.start.row, finding.code) for finding in result.findings)


def severities(source: str, code: str) -> list[str]:
    """The severities with which a rule reports."""
    content = textwrap.dedent(source).encode()
    result = lint([], Config(select=(code,)), stdin=StandardInput(content, "snippet.py"))
    return [finding.severity for finding in result.findings]


def agree(source: str, *codes: str) -> bool:
    """Whether exactly what the comments announce is reported; raises with both lists otherwise."""
    want, have = expected(source), reported(source, *codes)
    if want != have:
        raise AssertionError(f"announced {want}, reported {have} in\n{textwrap.dedent(source)}")
    return True


def in_files(files: Mapping[str, str], *codes: str) -> list[tuple[str, int, str]]:
    """The reports on a project of several files, which must stand in the working directory."""
    result = lint(sorted(files), Config(select=codes))
    return [(f.site.filename, f.site.start.row, f.code) for f in result.findings]
