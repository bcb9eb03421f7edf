"""Processes beside this one, as Linux shows them under ``/proc``: what the same launcher started, who holds a port.

Only for better names in reports, and to wait for what is about to come. Elsewhere, and where the files may not be
read, everything is empty.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from spmdguard.format import escape_text

__all__ = [
    "HOST_VARIABLE",
    "Neighbour",
    "describe_listener",
    "find_neighbours",
    "read_neighbour",
    "read_parent_environment",
]

HOST_VARIABLE = "SPMDGUARD_HOST"
"""Overrides the host's name in reports, for hosts whose own names say nothing, and for tests."""
_PROC = Path("/proc")
_MAX_NEIGHBOURS = 64
_MAX_BYTES = 2**20
_LISTENING = "0A"


class Neighbour(NamedTuple):
    """Another process that the launcher of this one started, with the rank it was given."""

    pid: int
    rank: int
    world_size: int
    address: str
    host: str

    def to_text(self) -> str:
        """``"4242 1 8 a:29500 host"``."""
        return f"{self.pid} {self.rank} {self.world_size} {self.address.replace(' ', '')} {self.host}"

    def describe(self) -> str:
        """``"process 4242 on host a"``."""
        return f"process {self.pid} on host {self.host}"


def read_neighbour(text: str) -> Neighbour | None:
    """The neighbour in a text of ``Neighbour.to_text``; None where it is none."""
    parts = text.split(" ", 4)
    if len(parts) != 5 or not all(part.isdecimal() and len(part) < 10 for part in parts[:3]):
        return None
    return Neighbour(int(parts[0]), int(parts[1]), int(parts[2]), parts[3], parts[4])


def find_strays(
    address: str, world_size: int | None, ranks: Collection[int], neighbours: Iterable[Neighbour]
) -> list[Neighbour]:
    """Neighbours that claim one of ``ranks`` of this job's size, but have another address that nobody serves.

    Where a neighbour is rank 0 at that address, they are a job of their own.
    """
    known = list(neighbours)
    served = {each.address for each in known if each.rank == 0}
    here = {each.rank for each in known if each.address == address}
    return [
        each
        for each in known
        if each.rank in ranks and each.rank not in here and each.world_size == world_size
        if each.address != address and (each.rank == 0 or each.address not in served)
    ]


def find_neighbours(script: str, host: str) -> list[Neighbour]:
    """Living processes with the same parent that have a rank, and ``script`` on their command line.

    ``host`` is the name of this host, for those whose own environment does not give it another one.
    """
    found: list[Neighbour] = []
    stem = Path(script).stem
    for pid in _find_children(os.getppid()):
        if pid == os.getpid() or len(found) >= _MAX_NEIGHBOURS:
            continue
        environment = _read_environment(pid)
        numbers = [environment.get(name, "") for name in ("RANK", "WORLD_SIZE")]
        if not all(number.isdecimal() and len(number) < 10 for number in numbers):
            continue
        if stem and stem not in _read_text(_PROC / str(pid) / "cmdline"):
            continue
        address = f"{environment.get('MASTER_ADDR', '')}:{environment.get('MASTER_PORT', '')}"
        named = environment.get(HOST_VARIABLE) or host
        found.append(Neighbour(pid, int(numbers[0]), int(numbers[1]), address, named))
    return found


def read_parent_environment() -> Mapping[str, str]:
    """The environment with which the parent process was started."""
    return _read_environment(os.getppid())


def describe_listener(port: int) -> str:
    """``"process 4242 (python train.py, RANK=0)"`` for what listens on a port of this host; else empty."""
    inodes = set(_find_listening_inodes(port))
    if not inodes:
        return ""
    links = {f"socket:[{inode}]" for inode in inodes}
    for folder in _PROC.glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if any(os.readlink(link) in links for link in (folder / "fd").iterdir()):  # noqa: PTH115 - no path
                return _describe_process(int(folder.name))
    return "a process of another user"


def _describe_process(pid: int) -> str:
    words = [word for word in _read_text(_PROC / str(pid) / "cmdline").split("\0") if word]
    shown = " ".join([Path(words[0]).name, *words[1:2]]) if words else "?"
    rank = _read_environment(pid).get("RANK")
    return f"process {pid} ({escape_text(shown, 80)}{f', RANK={escape_text(rank, 12)}' if rank else ''})"


def _find_children(pid: int) -> Iterator[int]:
    for tasks in sorted((_PROC / str(pid) / "task").glob("[0-9]*")):
        yield from map(int, _read_text(tasks / "children").split())


def _find_listening_inodes(port: int) -> Iterator[str]:
    for name in ("tcp", "tcp6"):
        for line in _read_text(_PROC / "net" / name).splitlines()[1:]:
            parts = line.split()
            if len(parts) > 9 and parts[3] == _LISTENING and parts[1].endswith(f":{port:04X}"):
                yield parts[9]


def _read_environment(pid: int) -> dict[str, str]:
    entries = (entry.partition("=") for entry in _read_text(_PROC / str(pid) / "environ").split("\0"))
    return {name: value for name, separator, value in entries if separator}


def _read_text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_MAX_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
