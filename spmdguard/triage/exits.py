"""How launchers say that processes ended: torchrun's table, srun, mpirun, spawn, DeepSpeed's launcher."""

from __future__ import annotations

import re
from dataclasses import dataclass

from spmdguard.triage.lines import Line
from spmdguard.triage.tags import Moment, read_tag

SIGNALS = {4: "SIGILL", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 9: "SIGKILL", 11: "SIGSEGV", 15: "SIGTERM"}
_BY_WORD = {
    "Killed": 9,
    "Segmentation fault": 11,
    "Aborted": 6,
    "Bus error": 7,
    "Terminated": 15,
    "Out Of Memory": 9,
}
_FIELD = re.compile(r"^[\s|]*(?P<key>time|host|rank|exitcode|error_file|traceback)\s*: ?(?P<value>.*)$")
_BLOCK = re.compile(r"^[\s|]*\[(?P<number>\d+)\]:\s*$")
_ROOT = "Root Cause (first observed failure)"
_TASKS = r"srun: error: (?P<host>[\w.-]+): tasks? (?P<ranks>[\d,-]+): "
_ONE_LINE = tuple(
    re.compile(pattern)
    for pattern in (
        r"failed \(exitcode: (?P<code>-?\d+)\) local_rank: (?P<local>\d+) \(pid: (?P<pid>\d+)\)",
        _TASKS + r"Exited with exit code (?P<code>\d+)",
        _TASKS + f"(?P<word>{'|'.join(_BY_WORD)})",
        r"process rank (?P<ranks>\d+) with PID (?P<pid>\d+) on node (?P<host>\S+) exited on signal (?P<signal>\d+)",
        r"process (?P<ranks>\d+) terminated with (?:signal (?P<name>SIG\w+)|exit code (?P<code>\d+))",
        r"Process (?P<pid>\d+) exits with return code = (?P<code>-?\d+)",
        r"\[?launch\.py.*?exits with return code = (?P<code>-?\d+)",
    )
)


@dataclass(slots=True)
class Exit:
    """One process that ended badly; ``code`` is negative for a signal, as Python has it."""

    line: Line
    code: int
    rank: int | None = None
    local_rank: int | None = None
    host: str | None = None
    pid: int | None = None
    when: Moment | None = None
    root: bool = False

    @property
    def signal(self) -> int:
        """The number of the signal that ended the process, or 0."""
        return -self.code if self.code < 0 else self.code - 128 if 128 < self.code < 160 else 0

    @property
    def text(self) -> str:
        """``"ended by SIGKILL"`` or ``"exit code 3"``"""
        if not self.signal:
            return f"exit code {self.code}"
        return f"ended by {SIGNALS.get(self.signal, f'signal {self.signal}')}"


class ExitReader:
    """Takes the lines of one file."""

    def __init__(self) -> None:
        self._exits: list[Exit] = []
        self._fields: dict[str, str] = {}
        self._root = False
        self._in_root = False

    def take(self, line: Line) -> bool:
        """Read one line; whether it was part of what a launcher says of its processes."""
        text = line.text
        if _ROOT in text:
            self._root = True
            self._fields = {}
            return True
        if _BLOCK.match(text):
            self._fields = {}
            self._in_root, self._root = self._root, False
            return True
        found = _FIELD.match(text)
        if found and (self._fields or found.group("key") in ("time", "host", "rank")):
            self._fields[found.group("key")] = found.group("value").strip()
            if found.group("key") == "exitcode":
                self._close(line)
            return True
        for pattern in _ONE_LINE:
            if one := pattern.search(text):
                self._one_line(one, line)
                return True
        return False

    def end(self) -> list[Exit]:
        """Everything read; a process named twice appears once, with what both say."""
        return self._exits

    def _close(self, line: Line) -> None:
        fields = self._fields
        code = re.match(r"(-?\d+)(?: \(pid: (\d+)\))?", fields["exitcode"])
        rank = re.match(r"(\d+)(?: \(local_rank: (\d+)\))?", fields.get("rank", ""))
        if not code:
            return
        when = read_tag(fields.get("time", "") + " ")[0].when
        ended = Exit(
            line,
            int(code.group(1)),
            int(rank.group(1)) if rank else None,
            int(rank.group(2)) if rank and rank.group(2) else None,
            fields.get("host") or None,
            int(code.group(2)) if code.group(2) else None,
            when,
            self._in_root,
        )
        self._exits.append(ended)

    def _one_line(self, found: re.Match[str], line: Line) -> None:
        parts = found.groupdict()
        if parts.get("word"):
            code = -_BY_WORD[parts["word"]]
        elif parts.get("signal"):
            code = -int(parts["signal"])
        elif parts.get("name"):
            code = -next((number for number, name in SIGNALS.items() if name == parts["name"]), 1)
        else:
            code = int(parts.get("code") or 1)
        pid = int(parts["pid"]) if parts.get("pid") else None
        local = int(parts["local"]) if parts.get("local") else None
        for rank in _ranks(parts.get("ranks") or ""):
            self._exits.append(Exit(line, code, rank, local, parts.get("host"), pid, line.tag.when))


def _ranks(text: str) -> list[int | None]:
    """``"0-2,5"`` to numbers; nothing to one unknown rank. At most 20,000."""
    found: list[int | None] = []
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        if first.isdigit() and (not last or last.isdigit()):
            found.extend(range(int(first), min(int(last or first), int(first) + 20_000) + 1))
    return found or [None]
