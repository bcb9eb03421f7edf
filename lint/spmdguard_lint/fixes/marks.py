"""The places that a finding names for its fix."""

from __future__ import annotations

from ..model import Finding, Site


def mark(finding: Finding, name: str) -> Site | None:
    """The first place of a name."""
    return next(iter(marked(finding, name)), None)


def marked(finding: Finding, name: str) -> list[Site]:
    """All places of a name in this finding's own file."""
    filename = finding.site.filename
    return [site for known, site in finding.marks if known == name and site.filename == filename]
