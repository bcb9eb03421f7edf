"""What the ranks of one node tell each other: a folder in shared memory, one slot a rank, one first cause.

A slot survives its rank: what a killed or stopped rank last said is still there. Each slot begins with the
writer's last sign of life, so that saying "nothing new" costs one small write.

The folder's name holds a random token that the ranks got through the job's own store, belongs to this user
alone, and is removed by the last rank that leaves.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import socket
import stat
import struct
import tempfile
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from spmdguard.format import escape_text

_HEADER = struct.Struct("=ddqII")  # last sign of life, when it was written, process id, length, checksum
MAX_SLOT_BYTES = 131_072
MAX_NOTE_BYTES = 65_536
_SLOT = re.compile(r"rank-(\d{1,9})")
NODE_VARIABLE = "SPMDGUARD_NODE"


def find_node() -> str:
    """What tells this node from others: the host's name and the process namespace."""
    named = os.environ.get(NODE_VARIABLE)
    if named:
        return escape_text(named, 60)
    try:
        namespace = Path("/proc/self/ns/pid").stat().st_ino
    except OSError:
        namespace = 0
    return f"{socket.gethostname()}-{namespace}"


def find_host() -> str:
    """This host's name in reports."""
    return escape_text(
        os.environ.get("SPMDGUARD_HOST") or os.environ.get(NODE_VARIABLE) or socket.gethostname(), 60
    )


def folder_for(token: str) -> Path:
    """The folder of this node for a job: in shared memory where there is some."""
    base = Path("/dev/shm")
    if not (base.is_dir() and os.access(base, os.W_OK)):
        base = Path(tempfile.gettempdir())
    node = re.sub(r"[^A-Za-z0-9.-]", "_", find_node())[:60]
    return base / f"spmdguard-{os.getuid()}-{token}-{node}"


class Board:
    """One node's folder, as one rank sees it."""

    def __init__(self, folder: Path, rank: int) -> None:
        self.folder = folder
        self.rank = rank
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
            raise PermissionError(f"{folder} is not a folder of this user alone")
        self._slot = os.open(folder / f"rank-{rank}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._readers: dict[int, int] = {}
        self._written_s, self._length, self._checksum = time.monotonic(), 0, 0
        self.beat()

    def write(self, payload: bytes) -> None:
        """Replace what this rank says."""
        if len(payload) > MAX_SLOT_BYTES:
            raise ValueError(f"a slot has at most {MAX_SLOT_BYTES} bytes, got {len(payload)}")
        self._written_s, self._length, self._checksum = time.monotonic(), len(payload), zlib.crc32(payload)
        os.pwrite(self._slot, self._header() + payload, 0)

    def find_size(self) -> int:
        """How many bytes this rank says now."""
        return self._length

    def beat(self) -> None:
        """Say that nothing changed."""
        os.pwrite(self._slot, self._header(), 0)

    def _header(self) -> bytes:
        return _HEADER.pack(time.monotonic(), self._written_s, os.getpid(), self._length, self._checksum)

    def ranks(self) -> list[int]:
        """The ranks that have a slot here."""
        found = (_SLOT.fullmatch(path.name) for path in self.folder.iterdir())
        return sorted(int(match[1]) for match in found if match)

    def read(self, rank: int) -> tuple[float, float, int, bytes] | None:
        """Ages of a rank's last sign of life and of what it said, in seconds; its process id; what it said."""
        for _ in range(3):  # a write may be under way
            head = self._pread(rank, _HEADER.size, 0)
            if len(head) < _HEADER.size:
                return None
            beat_s, written_s, pid, length, checksum = _HEADER.unpack(head)
            if length > MAX_SLOT_BYTES:
                return None
            payload = self._pread(rank, length, _HEADER.size)
            if zlib.crc32(payload) == checksum:
                now_s = time.monotonic()
                return max(0.0, now_s - beat_s), max(0.0, now_s - written_s), pid, payload
        return None

    def age_of(self, rank: int) -> tuple[float, int] | None:
        """Age of a rank's last sign of life, and its process id."""
        head = self._pread(rank, _HEADER.size, 0)
        if len(head) < _HEADER.size:
            return None
        beat_s, _, pid, _, _ = _HEADER.unpack(head)
        return max(0.0, time.monotonic() - beat_s), pid

    def _pread(self, rank: int, size: int, offset: int) -> bytes:
        try:
            descriptor = self._readers.get(rank)
            if descriptor is None:
                path = self.folder / f"rank-{rank}"
                descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
                self._readers[rank] = descriptor
            return os.pread(descriptor, size, offset)
        except OSError:
            return b""

    def post(self, name: str, note: dict[str, Any]) -> bool:
        """Leave a note for all under a name; the first one stays. Whether this one was it."""
        part = self.folder / f".{name}-{self.rank}-{os.getpid()}"
        text = json.dumps(note)
        if len(text) > MAX_NOTE_BYTES:
            raise ValueError(f"a note has at most {MAX_NOTE_BYTES} bytes, got {len(text)}")
        part.write_text(text, encoding="utf-8")
        try:
            os.link(part, self.folder / name)
        except FileExistsError:
            return False
        finally:
            part.unlink(missing_ok=True)
        return True

    def find(self, name: str) -> dict[str, Any] | None:
        """The note under a name; None without one that can be read."""
        path = self.folder / name
        try:
            if path.stat().st_size > MAX_NOTE_BYTES:
                return None
            found = json.loads(path.read_bytes())
        except (OSError, ValueError):
            return None
        return found if isinstance(found, dict) else None

    def has(self, name: str) -> bool:
        """Whether there is such a note."""
        return os.access(self.folder / name, os.F_OK)

    def forget(self, name: str) -> None:
        """Take a note back."""
        with contextlib.suppress(OSError):
            (self.folder / name).unlink(missing_ok=True)

    def close(self, *, remove: bool) -> None:
        """Close the files; ``remove`` the folder where this is the last rank."""
        for descriptor in (self._slot, *self._readers.values()):
            with contextlib.suppress(OSError):
                os.close(descriptor)
        self._readers.clear()
        if remove:
            shutil.rmtree(self.folder, ignore_errors=True)


def remove_left_over(base: Path) -> None:
    """Remove folders of this user whose processes are all gone: leftovers of jobs that were killed."""
    for folder in _own_folders(base):
        with contextlib.suppress(OSError):  # another rank removes it at the same time
            pids = {_pid_of(path) for path in folder.glob("rank-*")} - {0}
            old = time.time() - folder.stat().st_mtime > 600
            if old and not any(Path(f"/proc/{pid}").exists() for pid in pids):
                shutil.rmtree(folder, ignore_errors=True)


def _own_folders(base: Path) -> Iterator[Path]:
    with contextlib.suppress(OSError):
        for path in base.glob(f"spmdguard-{os.getuid()}-*"):
            with contextlib.suppress(OSError):
                if path.is_dir() and not path.is_symlink() and path.stat().st_uid == os.getuid():
                    yield path


def _pid_of(slot: Path) -> int:
    try:
        with slot.open("rb") as file:
            head = file.read(_HEADER.size)
        return int(_HEADER.unpack(head)[2]) if len(head) == _HEADER.size else 0
    except OSError:
        return 0


def process_state(pid: int) -> str:
    """The state letter of a process (``R`` running, ``S`` sleeping, ``T`` stopped, ``Z`` ended), or nothing."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return "S" if not Path("/proc/self/stat").exists() and _answers(pid) else ""
    return text.rpartition(")")[2].split()[0]


def _answers(pid: int) -> bool:
    """Whether a process exists, where there is no /proc."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
