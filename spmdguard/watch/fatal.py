"""How a process ended that said nothing: by which signal, and where its main thread was.

A process that is aborted (an exception in a C++ thread, an assertion, a segmentation fault) has ``faulthandler`` write
the stacks of its threads to a file of the node's board, which outlives it. That a process was killed is seen
in ``/proc`` between its end and the moment when its launcher takes note of it; who comes later learns no signal.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import re
import signal
from dataclasses import dataclass
from pathlib import Path

from spmdguard.watch.looking import operation_of, places_of
from spmdguard.watch.standing import Place

_MAX_BYTES = 65_536
_FRAME = re.compile(r'  File "([^"\n]{1,400})", line (\d{1,9}) in ([^\n]{1,200})')
_THREAD = re.compile(r"(?:Current thread|Thread) 0x")
_REASONS = {
    "Aborted": signal.SIGABRT,
    "Segmentation fault": signal.SIGSEGV,
    "Bus error": signal.SIGBUS,
    "Floating-point exception": signal.SIGFPE,
    "Floating point exception": signal.SIGFPE,
    "Illegal instruction": signal.SIGILL,
}
_EXIT_STATUS_FIELD = 49  # of /proc/<pid>/stat, counted from the state


class FatalRecord:
    """Has fatal signals write the stacks to the board; a program that has ``faulthandler`` on keeps it."""

    def __init__(self, folder: Path, rank: int) -> None:
        self._file = -1
        if not faulthandler.is_enabled():
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
            self._file = os.open(folder / f"fatal-{rank}", flags, 0o600)
            faulthandler.enable(file=self._file)

    def close(self) -> None:
        """Fatal signals write nothing any more. The file stays open: the program may have enabled it anew meanwhile."""
        if self._file >= 0:
            faulthandler.disable()
            with contextlib.suppress(OSError):
                os.close(self._file)
            self._file = -1


@dataclass(frozen=True)
class Fatal:
    """A fatal signal: its name, and the main thread's frames and operation at that moment."""

    signal: str
    places: tuple[Place, ...]
    operation: str


def read_fatal(folder: Path, rank: int) -> Fatal | None:
    """What a rank's process wrote when a fatal signal came; None where none did."""
    try:
        with (folder / f"fatal-{rank}").open("rb") as file:
            text = file.read(_MAX_BYTES).decode(errors="replace")
    except OSError:
        return None
    reason = text.partition("\n")[0].removeprefix("Fatal Python error: ")
    if reason not in _REASONS:
        return None
    frames = main_thread_frames(text)
    return Fatal(_REASONS[reason].name, places_of(frames), operation_of(frames))


def main_thread_frames(text: str) -> list[tuple[str, int, str]]:
    """The frames of the main thread, innermost first, in what ``faulthandler`` wrote last; it stands last there."""
    found = _THREAD.split(text)[-1]
    return [(file, int(line), function) for file, line, function in _FRAME.findall(found)][:60]


def find_end(pid: int) -> str:
    """``"SIGKILL"`` or ``"exit code 3"`` of a process that has ended and that its parent has not asked about yet."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
        fields = text.rpartition(")")[2].split()
        status = int(fields[_EXIT_STATUS_FIELD])
    except (OSError, IndexError, ValueError):
        return ""
    if fields[0] not in ("Z", "X"):
        return ""
    if os.WIFSIGNALED(status):
        return name_signal(os.WTERMSIG(status))
    return f"exit code {os.WEXITSTATUS(status)}"


def name_signal(number: int) -> str:
    """``"SIGKILL"``."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
