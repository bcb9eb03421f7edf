"""The reports that ``spmdguard run`` leaves in a log: who stood where, taken at their word."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from spmdguard.triage.lines import Line
from spmdguard.triage.tracebacks import Frame

MAX_STANDS = 200
_HEAD = re.compile(r"^spmdguard: (?P<kind>STALL|FAILED): (?P<text>.*)$")
_STAND = re.compile(r"^\s+(?P<mark>\*?)\s*ranks? (?P<ranks>\d[\d, -]*): (?P<text>.*)$")
_IN_TEXT = re.compile(r" at (?P<file>[^\s:<]+):(?P<line>\d+) in (?P<function>\S+)")
_PLACE = re.compile(r"^\s+(?:last seen )?at (?P<file>[^\s:<]+):(?P<line>\d+) in (?P<function>\S+)")


@dataclass
class OwnStand:
    """One row of a report: ranks, whether they are the ones to look at, what they do, and where."""

    ranks: list[int]
    marked: bool
    text: str
    place: Frame | None = None
    parting: bool = False  # said of the moment in which the ranks parted, not of the end


@dataclass
class OwnReport:
    """One report; ``stalled`` tells a stall from a failure."""

    stalled: bool
    text: str
    line: Line
    order: int = 0
    stands: list[OwnStand] = field(default_factory=list)


class OwnReportReader:
    """Takes the lines of one stream."""

    def __init__(self) -> None:
        self.found: list[OwnReport] = []
        self._open: OwnReport | None = None
        self._parting = False

    def take(self, line: Line, order: int) -> bool:
        """Read one line; whether it was part of a report. ``order`` says how many events came before."""
        head = _HEAD.match(line.text)
        if head:
            self._open = OwnReport(head.group("kind") == "STALL", head.group("text")[:1000], line, order)
            self.found.append(self._open)
            return True
        report = self._open
        if report is None:
            return False
        if not line.text.startswith("  "):
            self._open = None
            return False
        if line.text.startswith(("  parted:", "  ranks:")):
            self._parting = line.text.startswith("  parted:")
            return True
        stand = _STAND.match(line.text)
        place = _PLACE.match(line.text)
        if stand and len(report.stands) < MAX_STANDS:
            report.stands.append(_stand(stand, self._parting))
        elif place and report.stands and report.stands[-1].place is None:
            found = Frame(place.group("file"), int(place.group("line")), place.group("function"))
            report.stands[-1].place = found
        return True


def _stand(found: re.Match[str], parting: bool) -> OwnStand:
    text = found.group("text")[:500]
    place = _IN_TEXT.search(text) if parting else None
    frame = None
    if place:
        frame = Frame(place.group("file"), int(place.group("line")), place.group("function"))
        text = text[: place.start()]
    return OwnStand(_ranks(found.group("ranks")), bool(found.group("mark")), text, frame, parting)


def _ranks(text: str) -> list[int]:
    """``"0-2, 5"`` to numbers, at most 10,000."""
    numbers: list[int] = []
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        if first.isdigit():
            end = int(last) if last.strip().isdigit() else int(first)
            numbers.extend(range(int(first), min(end, int(first) + 10_000) + 1))
    return numbers[:10_000]
