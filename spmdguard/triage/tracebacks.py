"""Python tracebacks in the lines of one stream: plain, chained, in exception groups, and as boxes of ``rich``.

A stream may hold the lines of several processes that could not be told apart, so that tracebacks lie in one another;
then each frame goes to the traceback that was opened last, and each final line closes one. Lines between the frames
that belong to neither are passed over.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from spmdguard.triage.lines import Line
from spmdguard.triage.tags import NO_TAG

MAX_FRAMES = 400
MAX_MESSAGE_LINES = 40
_HEAD = re.compile(r"^[\s|+╭─│-]*(?:Exception Group )?Traceback \(most recent call last\)")
_FRAME = re.compile(r'^[\s|]*File "(?P<file>[^"]+)", line (?P<line>\d+)(?:, in (?P<function>.+))?$')
_BOX_FRAME = re.compile(r"^\s*(?P<file>[^\s:]+\.pyx?):(?P<line>\d+)(?:\s+in\s+(?P<function>\S+))?\s*$")
_FINAL = re.compile(
    r"^[\s|]*(?P<type>(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?:Error|Exception|Exit|Interrupt|Warning|Timeout|Failure|Failed"
    r"|Signal|Iteration|Abort|Broken|Group|Fault|Stop)|(?:[A-Za-z_]\w*\.)+[A-Z]\w*)"
    r"(?: \(\d+ sub-exceptions?\))?(?::\s?(?P<message>.*))?$"
)
_ANY_FINAL = re.compile(r"^(?P<type>(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*)(?::\s(?P<message>.*))?$")
_DIRECT = "The above exception was the direct cause of the following exception:"
_DURING = "During handling of the above exception, another exception occurred:"
_CARETS = re.compile(r"^[\s|]*[\^~]+[\s\^~]*$")
_BOX_EDGE = re.compile(r"^\s*[╭╰][─ ]")


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame: file as the log has it, line, function or ""."""

    file: str
    line: int
    function: str = ""


@dataclass(slots=True)
class Raised:
    """One exception of a chain, as the log shows it."""

    type: str
    message: str
    line: Line
    frames: tuple[Frame, ...] = ()

    @property
    def text(self) -> str:
        """``"OSError: [Errno 28] No space left on device"``"""
        return f"{self.type}: {self.message}" if self.message else self.type


@dataclass(slots=True)
class Chain:
    """The exceptions of one traceback, in the order in which they were raised."""

    raised: list[Raised]


@dataclass(slots=True)
class _Open:
    indent: int
    frames: list[Frame] = field(default_factory=list)
    box: bool = False
    last_was_frame: bool = False
    fresh: bool = True  # the line before belonged to this traceback
    after_box: bool = False


class TracebackReader:
    """Takes the lines of one stream; hands every finished chain of exceptions to ``found``."""

    def __init__(self, found: Callable[[Chain], None]) -> None:
        self._found = found
        self._open: list[_Open] = []
        self._chain: Chain | None = None
        self._message_lines = 0

    def take(self, line: Line) -> bool:
        """Read one line; whether it was part of a traceback."""
        text = line.text
        if _HEAD.match(text):
            if self._chain is not None and not self._joins:
                self._finish()
            box = "╭" in text or "─" in text
            self._open.append(_Open(len(text) - len(text.lstrip(" |")), box=box))
            self._joins = False
            self._message_lines = 0
            return True
        if self._open:
            return self._in_traceback(line)
        if self._chain is None:
            return False
        stripped = text.strip(" |")
        if stripped in (_DIRECT, _DURING):
            self._joins = True
            return True
        if self._joins:
            return not stripped
        return self._after(line, stripped)

    def interrupt(self) -> None:
        """Something else is told from here on: an exception whose last line was read is complete."""
        if not self._open:
            self._finish()

    def end(self) -> None:
        """No more lines: hand over what is unfinished; a traceback that was cut off has no exception."""
        for opened in self._open:
            if opened.frames:
                last = Line("", 0, "", NO_TAG)
                self._close(opened, "", "", self._last_line or last)
        self._open.clear()
        self._finish()

    _joins = False
    _last_line: Line | None = None

    def _after(self, line: Line, stripped: str) -> bool:
        """A line after the final one: more of the message, or the end of it."""
        assert self._chain is not None
        final = _FINAL.match(line.text) if not self._message_lines else None
        if not stripped:
            self._message_lines += 1
            return False
        continues = self._message_lines == 0 and line.text[:1] in (" ", "\t")
        if continues and final is None:
            raised = self._chain.raised[-1]
            if len(raised.message) < 2000:
                raised.message = f"{raised.message} {stripped}".strip()
            return True
        if self._message_lines == 0 or self._message_lines > 3:
            self._finish()
            return False
        self._message_lines += 1
        return False

    def _in_traceback(self, line: Line) -> bool:
        opened = self._open[-1]
        belongs = self._belongs(line, opened)
        opened.fresh = belongs
        return belongs

    def _belongs(self, line: Line, opened: _Open) -> bool:
        self._last_line = line
        text = line.text
        if opened.box:
            text = text.strip().strip("│").rstrip()
        frame = _FRAME.match(text) or (_BOX_FRAME.match(text) if opened.box else None)
        if frame:
            if len(opened.frames) < MAX_FRAMES:
                name = (frame.group("function") or "").strip()
                opened.frames.append(Frame(frame.group("file"), int(frame.group("line")), name))
            opened.last_was_frame = True
            return True
        if opened.box:
            if not opened.after_box:
                opened.after_box = bool(_BOX_EDGE.match(line.text)) and "╰" in line.text
                return True
            if not text.strip():
                return True
        return self._maybe_final(line, opened)

    def _maybe_final(self, line: Line, opened: _Open) -> bool:
        text = line.text
        indent = len(text) - len(text.lstrip(" |"))
        if indent <= opened.indent:
            body = text.strip(" |")
            final = _FINAL.match(body) or (_ANY_FINAL.match(body) if opened.last_was_frame else None)
            if final and _plausible(final) and (opened.fresh or not final.group("type").endswith("Warning")):
                self._open.pop(0 if len(self._open) > 1 and not opened.frames else -1)
                self._close(opened, final.group("type"), final.group("message") or "", line)
                return True
            return False
        return (
            opened.last_was_frame
            or bool(_CARETS.match(text))
            or text.lstrip(" |").startswith("[Previous line")
        )

    def _close(self, opened: _Open, name: str, message: str, line: Line) -> None:
        raised = Raised(name, message.strip(), line, tuple(opened.frames))
        if self._chain is None:
            self._chain = Chain([raised])
        else:
            self._chain.raised.append(raised)
        self._message_lines = 0
        self._joins = False

    def _finish(self) -> None:
        if self._chain is not None:
            chain, self._chain = self._chain, None
            self._found(chain)
        self._joins = False


def final_line(text: str) -> str | None:
    """The text of a line that looks like the last one of a traceback, on its own."""
    final = _FINAL.match(text)
    if final is None or not final.group("message") or final.group("type").endswith("Warning"):
        return None
    return text.strip()


def _plausible(final: re.Match[str]) -> bool:
    """Whether a line can end a traceback: not ordinary text that begins with a word and a colon."""
    name = final.group("type")
    last = name.rsplit(".", 1)[-1]
    return "." in name or last[:1].isupper() or final.re is _FINAL
