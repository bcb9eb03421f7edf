"""Names inside a checkpoint directory: what they say about a folder, and which folders nobody owns any more.

``step-00000100`` and, where that step is saved again, ``step-00000100.1`` are published checkpoints. A name
that begins with ``.spmdguard-saving-`` is a save under way; it holds the machine, process and start time of
the rank that made it, so that no file has to be written (on a full disk, say) to tell whose it is.
``.spmdguard-trash-`` is on its way out: no longer a checkpoint, even where deletion ends half-way.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import os
import platform
import re
import uuid
from dataclasses import dataclass
from pathlib import Path

TRASH = ".spmdguard-trash-"
_SAVING = ".spmdguard-saving-"
_PUBLISHED = re.compile(r"step-(\d{1,18})(?:\.(\d{1,9}))?")
_OWNED = re.compile(r"\.spmdguard-saving-step-(\d+)-([0-9a-f]{12})-(\d+)-(\d+)-([0-9a-f]+)")
_count = itertools.count()


@dataclass(frozen=True, order=True)
class Published:
    """A folder whose name is that of a checkpoint: of which step, and the how manieth one of that step."""

    step: int
    attempt: int = 0

    @property
    def name(self) -> str:
        """The folder's name."""
        return f"step-{self.step:08d}" + (f".{self.attempt}" if self.attempt else "")


def parse_published(name: str) -> Published | None:
    """What ``name`` says, where it is the name of a checkpoint exactly as this package writes it."""
    match = _PUBLISHED.fullmatch(name)
    if match is None:
        return None
    found = Published(int(match[1]), int(match[2] or 0))
    return found if found.name == name else None


def list_published(directory: Path) -> list[Published]:
    """Folders named as checkpoints, newest first; none where the directory does not exist."""
    try:
        with os.scandir(directory) as entries:
            names = [entry.name for entry in entries if entry.is_dir()]
    except FileNotFoundError:
        return []
    found = (parse_published(name) for name in names)
    return sorted((each for each in found if each is not None), reverse=True)


def new_saving_name(step: int) -> str:
    """A fresh name for a save under way, owned by this process."""
    owner = f"{machine()}-{os.getpid()}-{start_time(os.getpid())}"
    return f"{_SAVING}step-{step:08d}-{owner}-{uuid.uuid4().hex[:8]}"


def new_trash_name() -> str:
    """A fresh name for what is to be deleted."""
    return f"{TRASH}{uuid.uuid4().hex[:8]}-{next(_count)}"


def is_abandoned(folder: Path, active: set[str], now_s: float, foreign_age_s: float) -> bool:
    """Whether a folder belongs to a save that nobody will finish.

    Args:
        folder: any entry of a checkpoint directory.
        active: names of saves under way in this process.
        now_s: seconds since the epoch.
        foreign_age_s: how long nothing may have been written where the owner's machine cannot be asked.
    """
    if folder.name.startswith(TRASH):
        return True
    match = _OWNED.fullmatch(folder.name)
    if match is None or folder.name in active:
        return False
    owner_machine, pid, started = match[2], int(match[3]), int(match[4])
    if owner_machine == machine():
        return pid == os.getpid() or start_time(pid) != started
    return now_s - _last_written_s(folder) > foreign_age_s


def _last_written_s(folder: Path) -> float:
    times = [folder.stat().st_mtime]
    for parent, _, files in os.walk(folder):
        times += [os.stat(os.path.join(parent, name)).st_mtime for name in files]  # noqa: PTH116, PTH118 - fast
    return max(times)


@functools.lru_cache(maxsize=1)
def machine() -> str:
    """Identity of the space with one set of processes and of files: host, boot, PID and mount namespace."""
    parts = [platform.node()]
    for read in (_boot, lambda: _namespace("pid"), lambda: _namespace("mnt")):
        try:
            parts.append(read())
        except OSError:
            parts.append("")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]


def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()


def _namespace(kind: str) -> str:
    return str(Path(f"/proc/self/ns/{kind}").readlink())


def start_time(pid: int) -> int:
    """When a process started, in clock ticks since boot; -1 where there is none, 0 where nobody tells."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        fields = stat.rpartition(")")[2].split()
        return -1 if fields[0] == "Z" else int(fields[19])
    except OSError:
        if Path("/proc/self/stat").exists():
            return -1
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return -1
    except OSError:
        return 0
    return 0
