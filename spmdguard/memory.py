"""Exhausted memory: how it looks as an exception, how much is in use, and what to try.

Reads ``/proc`` and asks torch only where the program has loaded it; every part may be unknown, none raises.
"""

from __future__ import annotations

import contextlib
import errno
import sys
from pathlib import Path
from typing import Any

_SIGNS = (
    "out of memory",
    "can't allocate memory",
    "cannot allocate memory",
    "not enough memory",
    "alloc_failed",
    "std::bad_alloc",
)
_DEVICE_SIGNS = ("cuda", "hip", "xpu", "mps", "cublas", "nccl")
_GIB = 2.0**30
HOST_ADVICE = (
    "load less at a time on the host: fewer or lighter DataLoader workers, memory-mapped data, "
    "meta-device initialisation; or fewer ranks per host"
)
DEVICE_ADVICE = (
    "use a smaller batch per rank with gradient accumulation, activation checkpointing, or sharding (FSDP2); "
    "where much more is reserved than allocated, PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"
)


def is_out_of_memory(exc: BaseException) -> bool:
    """Whether ``exc``, or what it was raised from, says that memory is exhausted, on the host or a device."""
    seen: set[int] = set()
    current: BaseException | None = exc
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        if _says_so(current):
            return True
        current = current.__cause__
    return False


def _says_so(exc: BaseException) -> bool:
    if isinstance(exc, MemoryError) or any(cls.__name__ == "OutOfMemoryError" for cls in type(exc).__mro__):
        return True
    if isinstance(exc, OSError):
        return exc.errno == errno.ENOMEM
    if not isinstance(exc, RuntimeError):
        return False
    text = _text(exc)
    return any(sign in text for sign in _SIGNS)


def advise(exc: BaseException) -> str:
    """What to try after ``exc``, which says that memory is exhausted."""
    name = " ".join(cls.__module__ for cls in type(exc).__mro__)
    text = _text(exc)
    on_device = any(sign in text for sign in _DEVICE_SIGNS) or (
        "torch" in name and "alloc" not in text.partition("memory")[0]
    )
    return DEVICE_ADVICE if on_device else HOST_ADVICE


def _text(exc: BaseException) -> str:
    try:
        return str(exc).lower()
    except Exception:
        return ""


def describe_memory() -> str:
    """``"9.1 GiB of host memory in this process (peak 9.4), 3.0 of 64.0 GiB free; cuda:0: ..."``."""
    parts: list[str] = []
    for describe in (_describe_host, _describe_devices):
        with contextlib.suppress(Exception):
            parts += describe()
    return "; ".join(parts) or "memory in use is not known here"


def _describe_host() -> list[str]:
    own = _read_table(Path("/proc/self/status"))
    text = f"{own['VmRSS'] / _GIB:.1f} GiB of host memory in this process (peak {own['VmHWM'] / _GIB:.1f})"
    host = _read_table(Path("/proc/meminfo"))
    text += f", {host['MemAvailable'] / _GIB:.1f} of {host['MemTotal'] / _GIB:.1f} GiB free on the host"
    with contextlib.suppress(OSError, ValueError):
        used, limit = (
            int(Path(f"/sys/fs/cgroup/memory.{name}").read_text(encoding="ascii"))
            for name in ("current", "max")
        )
        text += f", {used / _GIB:.1f} of {limit / _GIB:.1f} GiB of the container"
    return [text]


def _read_table(path: Path) -> dict[str, float]:
    """Bytes by name, from lines such as ``VmRSS:   1024 kB``."""
    lines = (line.split() for line in path.read_text(encoding="ascii").splitlines())
    return {line[0].rstrip(":"): 1024.0 * int(line[1]) for line in lines if line[-1] == "kB"}


def _describe_devices() -> list[str]:
    cuda: Any = getattr(sys.modules.get("torch"), "cuda", None)
    if cuda is None or not cuda.is_available() or not cuda.is_initialized():
        return []
    device = cuda.current_device()
    free, total = cuda.mem_get_info(device)
    return [
        f"cuda:{device}: {cuda.memory_allocated(device) / _GIB:.1f} GiB allocated (peak "
        f"{cuda.max_memory_allocated(device) / _GIB:.1f}), {cuda.memory_reserved(device) / _GIB:.1f} reserved, "
        f"{free / _GIB:.1f} of {total / _GIB:.1f} free on the device"
    ]
