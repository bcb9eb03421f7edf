"""Run one program on several ranks under torchrun, in a folder of its own, and bound it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Ended:
    """How a run ended: ``code`` is None where it had to be killed; ``reports`` by their names."""

    code: int | None
    seconds: float
    log: str
    reports: Mapping[str, str]


def free_port() -> int:
    """A TCP port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def launch(
    program: Sequence[str], *, nproc: int, timeout_s: float, environment: Mapping[str, str] | None = None
) -> Ended:
    """Run ``torchrun program`` and collect its output and the reports below ``reports``."""
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(nproc)]
    command += ["--master-port", str(free_port()), *program]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        started_s = time.monotonic()
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                command,
                cwd=folder,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                env={**os.environ, "OMP_NUM_THREADS": "1", **(environment or {})},
            )
            try:
                code: int | None = process.wait(timeout_s)
            except subprocess.TimeoutExpired:
                code = None
            finally:
                _end(process)
        seconds = time.monotonic() - started_s
        reports = {
            path.name: path.read_text(errors="replace") for path in sorted((folder / "reports").glob("*"))
        }
        return Ended(code, seconds, (folder / "log").read_text(errors="replace"), reports)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End torchrun and, by their sessions, the ranks that it started."""
    children = _children_of(process.pid)
    for pid in [process.pid, *children]:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    process.wait(timeout=10)


def _children_of(pid: int) -> list[int]:
    found: list[int] = []
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:
        return found
    for child in map(int, text.split()):
        found += [child, *_children_of(child)]
    return found
