"""One report for one defect: of two rules that speak of the same place, the one that says more wins.

Terminology: a finding *overrules* another at the same site when both tell of ranks that part there, and its rule is
the more specific. One that stands at a condition and tells of an exit (its mark "exit") counts as standing there.
What the user did not select overrules nothing. Cost: linear in the findings.
"""

from __future__ import annotations

from collections.abc import Iterable

from .model import Finding, Site

# From the most specific to the most general: who has agreed on nothing, what was raised too early, which group,
# that the rank decides, that a handler goes on; then what else decides, and at last the mere raise.
SPECIFIC = (
    "SPG301",
    "SPG307",
    "SPG308",
    "SPG601",
    "SPG106",
    "SPG101",
    "SPG102",
    "SPG103",
    "SPG104",
    "SPG105",
    "SPG203",
    "SPG202",
    "SPG403",
    "SPG401",
    "SPG402",
    "SPG302",
    "SPG303",
    "SPG304",
    "SPG305",
    "SPG306",
    "SPG205",
)
_PLACE = {code: position for position, code in enumerate(SPECIFIC)}


def overruled(findings: Iterable[Finding]) -> frozenset[Finding]:
    """The findings beside which a more specific one stands at the same site."""
    best: dict[Site, Finding] = {}
    told = [finding for finding in findings if finding.code in _PLACE]
    for finding in told:
        known = best.get(_about(finding))
        if known is None or _PLACE[finding.code] < _PLACE[known.code]:
            best[_about(finding)] = finding
    return frozenset(finding for finding in told if finding.code != best[_about(finding)].code)


def _about(finding: Finding) -> Site:
    return next((site for name, site in finding.marks if name == "exit"), finding.site)
