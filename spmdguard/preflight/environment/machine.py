"""Facts of this host that communication depends on: memory, limits, processors."""

from __future__ import annotations

import os
import resource
from pathlib import Path
from typing import Any

__all__ = ["find_machine", "find_memory_limit", "find_shared_memory"]

_UNLIMITED = 2**60


def find_machine(root: Path) -> dict[str, Any]:
    """Memory, shared memory, limits and processors; ``root`` is where the file system begins."""
    return {
        "cpus": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory": find_memory(root),
        "memory_limit": find_memory_limit(root),
        "shared_memory": find_shared_memory(root / "dev/shm"),
        "open_files": _find_limit(resource.RLIMIT_NOFILE),
        "locked_memory": _find_limit(getattr(resource, "RLIMIT_MEMLOCK", None)),
        "infiniband": sorted(path.name for path in _list(root / "sys/class/infiniband")),
    }


def find_memory(root: Path) -> int | None:
    """Bytes of memory of the host."""
    for line in _read(root / "proc/meminfo").splitlines():
        if line.startswith("MemTotal:"):
            return int(line.split()[1]) * 1024
    return None


def find_memory_limit(root: Path) -> int | None:
    """The smallest limit of the container's control groups above this process, version 1 or 2; None without one."""
    found = []
    for line in _read(root / "proc/self/cgroup").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controllers == "":
            found += _find_limits(root / "sys/fs/cgroup", path, "memory.max")
        elif "memory" in controllers.split(","):
            found += _find_limits(root / "sys/fs/cgroup/memory", path, "memory.limit_in_bytes")
    limits = [limit for limit in found if limit < _UNLIMITED]
    return min(limits, default=None)


def _find_limits(top: Path, path: str, name: str) -> list[int]:
    """Inside a container the path may be that of the host, and only the top is there."""
    folder = top / path.strip("/")
    folders = [top, *[each for each in (folder, *folder.parents) if top in each.parents]]
    texts = (_read(each / name).strip() for each in folders)
    return [int(text) for text in texts if text.isdecimal()]


def find_shared_memory(folder: Path) -> dict[str, int] | None:
    """Size and free bytes of the file system for shared memory; None where there is none."""
    try:
        found = os.statvfs(folder)
    except OSError:
        return None
    return {"size": found.f_blocks * found.f_frsize, "free": found.f_bavail * found.f_frsize}


def _find_limit(kind: int | None) -> int | None:
    """The soft limit; None where there is no limit."""
    if kind is None:
        return None
    soft, _ = resource.getrlimit(kind)
    return None if soft == resource.RLIM_INFINITY else soft


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _list(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []
