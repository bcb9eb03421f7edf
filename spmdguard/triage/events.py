"""From lines to events: exceptions, messages that a pattern knows, and how the launcher says that processes ended.

Lines are read once, file by file; each stream (file and tag) has its own reader of tracebacks. What is kept is
bounded: the first events of each kind in each stream, and counts of the rest.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import partial

from spmdguard.triage.exits import Exit, ExitReader
from spmdguard.triage.lines import Line
from spmdguard.triage.own_report import OwnReport, OwnReportReader
from spmdguard.triage.patterns import Pattern, Patterns
from spmdguard.triage.tags import Moment, Tag
from spmdguard.triage.tracebacks import Chain, Frame, Raised, TracebackReader, final_line

CUT_OFF = "a traceback that was cut off"
MAX_ALIKE = 20  # events of one pattern kept for one stream; the rest is counted
_LIBRARY = re.compile(
    r"(?:site-packages|dist-packages|<frozen|/lib/python\d|\\lib\\|/spmdguard/|/torch/|<string>|/bin/torchrun|/bin/accelerate"
    r"|/bin/deepspeed)"
)
_WORLD = re.compile(r"(?:\bnranks[ =:]+|world[_ ]size['\"]?[ =:]+)(\d{1,6})\b", re.IGNORECASE)
_RANK_OF_COMM = re.compile(r"\brank (\d+) nranks \d+")
_SPEAKER = re.compile(
    r"^spmdguard: rank (?P<rank>\d+) (?P<how>failed too|failed|lost its partner|is a victim)\b"
)
_LAUNCHER_ERRORS = re.compile(
    r"ChildFailedError|CalledProcessError|ProcessRaisedException|ProcessExitedException"
)


@dataclass(slots=True)
class Event:
    """Something that a log says about a failure. ``role`` is that of a pattern; unknown exceptions are causes."""

    role: str
    text: str
    line: Line
    stream: str
    order: int
    pattern: Pattern | None = None
    kept: dict[str, str] = field(default_factory=dict)
    frames: tuple[Frame, ...] = ()
    chain: tuple[str, ...] = ()
    count: int = 1
    when: Moment | None = None

    @property
    def tag(self) -> Tag:
        """Who wrote it."""
        return self.line.tag

    @property
    def place(self) -> Frame | None:
        """The innermost frame of the user's own code, or of any code where there is none."""
        own = [frame for frame in self.frames if not is_library(frame.file)]
        return own[-1] if own else self.frames[-1] if self.frames else None

    @property
    def callers(self) -> tuple[Frame, ...]:
        """The user's frames from the outside in."""
        return tuple(frame for frame in self.frames if not is_library(frame.file))


@dataclass(slots=True)
class Evidence:
    """All that the logs say."""

    events: list[Event] = field(default_factory=list)
    exits: list[Exit] = field(default_factory=list)
    streams: dict[str, Tag] = field(default_factory=dict)
    last_lines: dict[str, Line] = field(default_factory=dict)
    rank_of_pid: dict[tuple[str | None, int], int] = field(default_factory=dict)
    reports: list[OwnReport] = field(default_factory=list)
    world_size: int | None = None
    num_lines: int = 0


def is_library(file: str) -> bool:
    """Whether a source file is part of Python, an installed package or a launcher."""
    return bool(_LIBRARY.search(file.replace("\\", "/")))


def stream_of(line: Line) -> str:
    """What tells the process that wrote a line apart from others, as far as its tag goes."""
    tag = line.tag
    who = [
        f"{name}={value}"
        for name, value in (("rank", tag.rank), ("local", tag.local_rank))
        if value is not None
    ]
    if not who:
        who = [f"{name}={value}" for name, value in (("actor", tag.actor), ("pid", tag.pid)) if value]
    return "|".join([line.file, tag.host or "", *who])


class Collector:
    """Takes every line of every log, in order; ``evidence()`` is what came of them."""

    def __init__(self, patterns: Patterns) -> None:
        self._patterns = patterns
        self._evidence = Evidence()
        self._readers: dict[str, TracebackReader] = {}
        self._exits: dict[str, ExitReader] = {}
        self._seen: dict[tuple[str, str], list[Event]] = defaultdict(list)
        self._when: dict[str, Moment] = {}
        self._own: dict[str, OwnReportReader] = {}
        self._speaker: dict[
            str, tuple[int, bool]
        ] = {}  # by file: whose traceback comes next; whether it failed first

    def take(self, lines: Iterable[Line]) -> None:
        """Read the lines of one file."""
        for line in lines:
            self._take(line)

    def add(self, event: Event) -> None:
        """Add an event that comes from no line, such as a dump."""
        self._evidence.streams.setdefault(event.stream, event.tag)
        self._add(event)

    def evidence(self) -> Evidence:
        """Everything found; call it once, after the last line."""
        for reader in self._readers.values():
            reader.end()
        for own in self._own.values():
            self._evidence.reports.extend(own.found)
        for exits in self._exits.values():
            self._evidence.exits.extend(exits.end())
        return self._evidence

    def _take(self, line: Line) -> None:
        self._evidence.num_lines += 1
        stream = stream_of(line)
        if stream not in self._readers:
            self._readers[stream] = TracebackReader(partial(self._exception, stream=stream))
            self._evidence.streams[stream] = line.tag
        if line.tag.when:
            self._when[stream] = line.tag.when
        if line.text.startswith("spmdguard: "):  # ends whatever was being told before
            for name, reader in self._readers.items():
                if name.startswith(f"{line.file}|"):
                    reader.interrupt()
        if self._own.setdefault(stream, OwnReportReader()).take(line, len(self._evidence.events)):
            return
        if spoken := _SPEAKER.match(line.text):
            self._speaker[line.file] = int(spoken.group("rank")), spoken.group("how") == "failed"
        exits = self._exits.setdefault(line.file, ExitReader())
        part_of_table = exits.take(line)
        if self._readers[stream].take(line) or not line.text.strip():
            return
        self._evidence.last_lines[stream] = line
        if not part_of_table:
            self._message(line, stream)

    def _message(self, line: Line, stream: str) -> None:
        text = line.text
        if found := _WORLD.search(text):
            self._evidence.world_size = max(self._evidence.world_size or 0, int(found.group(1)))
        if line.tag.pid is not None and (found := _RANK_OF_COMM.search(text)):
            self._evidence.rank_of_pid[line.tag.host, line.tag.pid] = int(found.group(1))
        match = self._patterns.find(text, "line")
        if match is None:
            if lone := final_line(
                text
            ):  # an exception without its traceback: logged so, or cut, or out of order
                self._add(Event("suspect", lone, line, stream, 0))
            return
        pattern, found = match
        kept = {name: found.group(name) for name in pattern.keep if found.group(name) is not None}
        self._add(Event(pattern.role, text.strip(), line, stream, 0, pattern, kept))

    def _exception(self, chain: Chain, stream: str) -> None:
        speaker, first = self._speaker.pop(chain.raised[0].line.file, (None, True))
        for raised in chain.raised:
            if speaker is not None and raised.line.tag.rank is None:
                raised.line = replace(raised.line, tag=replace(raised.line.tag, rank=speaker))
        judged = [(raised, self._judge(raised)) for raised in chain.raised]
        judged = [item for item in judged if not _LAUNCHER_ERRORS.search(item[0].type)] or judged[-1:]
        own = [item for item in judged if item[1][0] in ("cause", "suspect")]
        raised, (role, pattern, kept) = own[-1] if own else judged[0]
        texts = tuple(one.text for one, _ in judged if one is not raised)
        if _LAUNCHER_ERRORS.search(raised.type):
            role = "victim"
        if not raised.type or (role == "cause" and not first):
            role = "suspect"
        event = Event(
            role,
            raised.text or CUT_OFF,
            raised.line,
            stream,
            0,
            pattern,
            kept,
            raised.frames,
            texts,
        )
        self._add(event)

    def _judge(self, raised: Raised) -> tuple[str, Pattern | None, dict[str, str]]:
        match = self._patterns.find(raised.text, "exception")
        if match is None:
            return "note" if raised.type.endswith("Warning") else "cause", None, {}
        pattern, found = match
        role = "cause" if pattern.role == "note" else pattern.role
        return (
            role,
            pattern,
            {name: found.group(name) for name in pattern.keep if found.group(name) is not None},
        )

    def _add(self, event: Event) -> None:
        name = event.pattern.name if event.pattern else event.text
        alike = self._seen[event.stream, name]
        if len(alike) >= MAX_ALIKE:
            alike[0].count += 1
            return
        event.order = len(self._evidence.events)
        event.when = event.tag.when or self._when.get(event.stream)
        alike.append(event)
        self._evidence.events.append(event)
