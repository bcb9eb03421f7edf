"""What stands before the message of a log line: who wrote it, and when.

Some prefixes can be told by their form alone (``[rank3]:``, ``(Worker pid=12)``); others look like ordinary text
(``3: `` of ``srun --label``, ``node7: `` of pdsh) and count only in a file most of whose lines carry them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

Moment = tuple[
    int, int, int, int, int, float
]  # year or 0 where the log has none, month, day, hour, minute, second


@dataclass(frozen=True, slots=True)
class Tag:
    """Who wrote a line: global rank, rank on its host, host, process, and when; None where nothing tells."""

    rank: int | None = None
    local_rank: int | None = None
    host: str | None = None
    pid: int | None = None
    when: Moment | None = None
    actor: str = ""  # what else tells two processes apart, such as the name of a pod

    def over(self, other: Tag) -> Tag:
        """This tag, with what it lacks taken from ``other``."""
        if other is NO_TAG:
            return self
        return Tag(
            self.rank if self.rank is not None else other.rank,
            self.local_rank if self.local_rank is not None else other.local_rank,
            self.host or other.host,
            self.pid if self.pid is not None else other.pid,
            self.when or other.when,
            self.actor or other.actor,
        )


NO_TAG = Tag()


@dataclass(frozen=True, slots=True)
class Habits:
    """Which ambiguous prefixes the lines of a file carry."""

    number: bool = False  # "3: "
    host: bool = False  # "node7: "


HABIT = 0.4  # the part of a file's lines that must carry an ambiguous prefix; launchers add lines without it
_NUMBER = re.compile(r"\s{0,5}(?P<rank>\d{1,5}): ?")
_HOST = re.compile(r"(?P<host>[A-Za-z][\w-]*(?:\.[\w-]+)*|\d{1,3}(?:\.\d{1,3}){3}): ?")
_NO_HOST = re.compile(
    r"(?:srun|slurmstepd|mpirun|torchrun|spmdguard|python3?|bash|sh|Traceback|File|info|warning|error|debug|note)\b"
    r"|[\w.]*(?:Error|Exception|Warning|Exit|Interrupt)\b",
    re.IGNORECASE,
)
_LEVEL = r"(?:TRACE|DEBUG|INFO|WARN|WARNING|ERROR|CRITICAL|FATAL)"
_TIME = r"(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d(?:[.,]\d+)?)"
_DATE = r"(?P<year>\d{4})[-/](?P<month>\d\d)[-/](?P<day>\d\d)[T _]" + _TIME

# Tried again and again until none fits, each at the start of what is left.
_SURE = tuple(
    re.compile(pattern)
    for pattern in (
        r"\[(?:rank)[:\s]?\s*(?P<rank>\d+)\]:? ?",
        r"\[(?:RANK|Rank)[:\s]?\s*(?P<rank>\d+)\]:? ?",
        r"\[[A-Za-z_]{2,20}?(?P<local>\d+)\]: ?",
        r"\[rank: ?(?P<rank>\d+)\] ?",
        r"\(rank:? ?(?P<rank>\d+)\) ?",
        r"\[\d+,(?P<rank>\d+)\]<std(?:err|out|diag)>: ?",
        r"\((?P<actor>\w[\w.:]*)(?:\([^)]*\))? pid=(?P<pid>\d+)(?:, ip=(?P<host>[\w.:-]+))?\) ?",
        r"\[pod/(?P<actor>[^/\]\s]+)/[^\]\s]+\] ?",
        r"(?P<actor>[\w.-]+-\d+)\s+\| ?",
        r"(?P<actor>[\w.-]+) \[(?:stderr|stdout)\] ?",
        r"\[?" + _DATE + r"(?:Z|[+-]\d\d:?\d\d)?\]?(?: ?[-|:] | |$)",
        r"\[?(?P<lmonth>\d\d)[/-](?P<lday>\d\d)(?:[/-]\d\d)? " + _TIME + r"\]? ?",
        r"[IWEF](?P<gmonth>\d\d)(?P<gday>\d\d) " + _TIME + r"\s+\d+ [^\]\s]+\] ?",
        r"(?:\| ?)?" + _LEVEL + r" *\| [\w.<>]+:[\w.<>]+:\d+ - ",
        r"\[?" + _LEVEL + r"\]?(?: +[\w./-]+:\d+\]?|:[\w.]+:|\s*[|:-])? ?(?=\S)",
        r"\[" + _LEVEL + r"\] ?",
        r"\[[\w./-]+\.(?:py|cpp|cc|h):\d+(?::\w+)?\] ?",
        r"[\w./-]+\.py:\d+\] ?",
    )
)
# Found inside a line: they tell who wrote it, but are part of the message.
_INSIDE = (
    re.compile(r"\[[EWIF](?P<month1>\d)(?P<day>\d\d) (?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d\.\d+) "),
    re.compile(
        r"\[[EWIF](?P<gmonth>\d\d)(?P<gday>\d\d) (?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d\.\d+) "
    ),
    re.compile(r"\[(?:PG[^\]]*?)?Rank (?P<rank>\d+)\]"),
    re.compile(r"^spmdguard: rank (?P<rank>\d+) "),
    re.compile(r"^(?P<host>[\w.-]+):(?P<pid>\d+):\d+ \[(?P<local>\d+)\] (?=.*NCCL)"),
)


def habits_of(sample: Sequence[str]) -> Habits:
    """Which ambiguous prefixes a good part of the non-empty lines of a sample carries."""
    lines = [line for line in sample if line.strip()]
    if len(lines) < 4:
        return Habits()
    numbered = sum(bool(_NUMBER.match(line)) for line in lines)
    hosts: Counter[str] = Counter()
    for line in lines:
        found = _HOST.match(line)
        if found and not _NO_HOST.match(line):
            hosts[found.group("host")] += 1
    repeated = sum(count for count in hosts.values() if count >= 3)
    return Habits(numbered >= HABIT * len(lines), repeated >= HABIT * len(lines))


def read_tag(text: str, habits: Habits = Habits()) -> tuple[Tag, str]:
    """The tag of a line, and the line without it; indentation after the tag is kept."""
    tag, rest = NO_TAG, text
    for _ in range(8):
        found = _match(rest, habits)
        if found is None:
            break
        tag = _add(tag, found)
        rest = rest[found.end() :]
        habits = replace(habits, number=False, host=False) if found.re in (_NUMBER, _HOST) else habits
    for pattern in _INSIDE:
        inside = pattern.search(rest)
        if inside:
            tag = _add(tag, inside)
    return tag, rest


def _match(text: str, habits: Habits) -> re.Match[str] | None:
    if habits.number and (found := _NUMBER.match(text)):
        return found
    if habits.host and (found := _HOST.match(text)) and not _NO_HOST.match(text):
        return found
    if not text or text[0] == " ":
        return None
    for pattern in _SURE:
        found = pattern.match(text)
        if found and found.end():
            return found
    return None


def _add(tag: Tag, found: re.Match[str]) -> Tag:
    parts = found.groupdict()
    when = _moment(parts)
    return tag.over(
        Tag(
            _number(parts.get("rank")),
            _number(parts.get("local")),
            parts.get("host"),
            _number(parts.get("pid")),
            when,
            parts.get("actor") or "",
        )
    )


def _moment(parts: dict[str, str | None]) -> Moment | None:
    month = parts.get("month") or parts.get("gmonth") or parts.get("lmonth") or parts.get("month1")
    day = parts.get("day") or parts.get("gday") or parts.get("lday")
    hour, minute, second = parts.get("hour"), parts.get("minute"), parts.get("second")
    if not (month and day and hour and minute and second):
        return None
    year = int(parts.get("year") or 0)
    return year, int(month), int(day), int(hour), int(minute), float(second.replace(",", "."))


def _number(text: str | None) -> int | None:
    return int(text) if text else None
