"""GPUs of this host, their links and peer-to-peer reads, as ``nvidia-smi`` tells; creates no CUDA context."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Sequence
from typing import Any

__all__ = ["find_gpus", "read_matrix"]

_TIMEOUT_S = 20.0
_FIELDS = ("index", "name", "uuid", "memory.total", "driver_version", "pci.bus_id")


def run_nvidia_smi(arguments: Sequence[str]) -> str:
    """What ``nvidia-smi`` prints; empty where it is missing or fails."""
    command = shutil.which("nvidia-smi")
    if command is None:
        return ""
    try:
        done = subprocess.run(
            [command, *arguments], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""


def find_gpus(run: Callable[[Sequence[str]], str] = run_nvidia_smi) -> dict[str, Any] | None:
    """Devices, the matrix of links and the matrix of peer-to-peer reads; None without a GPU."""
    lines = run([f"--query-gpu={','.join(_FIELDS)}", "--format=csv,noheader,nounits"]).splitlines()
    devices = [
        dict(zip(_FIELDS, (part.strip() for part in line.split(",")), strict=True))
        for line in lines
        if line.count(",") == len(_FIELDS) - 1
    ]
    if not devices:
        return None
    return {
        "devices": devices,
        "links": read_matrix(run(["topo", "-m"])),
        "peer_to_peer": read_matrix(run(["topo", "-p2p", "r"])),
    }


def read_matrix(text: str) -> list[list[str]]:
    """The square of GPU rows and columns in a table of ``nvidia-smi topo``."""
    plain = text.replace("\x1b[4m", "").replace("\x1b[0m", "")
    rows = [line.split() for line in plain.splitlines()]
    body = [row for row in rows if row and row[0].startswith("GPU") and "X" in row[1:]]
    return [row[1 : len(body) + 1] for row in body]
