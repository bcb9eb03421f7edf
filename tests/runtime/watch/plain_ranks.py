"""Ranks of ``spmdguard run`` as plain processes, which no launcher ends."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ..processes.ports import free_port


class Plain(NamedTuple):
    """How a rank ended; negative codes are signals."""

    code: int
    err: str
    pid: int


def start_rank(
    folder: Path,
    rank: int,
    num: int,
    port: int,
    *argv: str,
    options: Sequence[str] = (),
    each: Mapping[str, str] | None = None,
    err: Path | None = None,
) -> subprocess.Popen[str]:
    """Start one rank; its stderr goes to a pipe, or to the file ``err``."""
    with contextlib.ExitStack() as stack:
        return subprocess.Popen(
            [sys.executable, "-m", "spmdguard", "run", *options, "train.py", *argv],
            cwd=folder,
            env={**_environment(rank, num, str(port)), **_filled(each or {}, rank)},
            stderr=subprocess.PIPE if err is None else stack.enter_context(err.open("w")),
            stdout=subprocess.DEVNULL,
            text=True,
        )


def run_ranks(
    folder: Path,
    *argv: str,
    options: Sequence[str] = ("--stall-limit", "20"),
    num: int = 2,
    each: Mapping[str, str] | None = None,
    timeout_s: float = 120.0,
) -> list[Plain]:
    """Run ``train.py`` in ``folder`` on every rank.

    Args:
        folder: where the script is.
        argv: the script's arguments.
        options: those of ``spmdguard run``.
        num: how many ranks.
        each: environment variables of every rank; RANK in a value is replaced.
        timeout_s: how long they may take.
    """
    port = free_port()
    processes = [
        start_rank(folder, rank, num, port, *argv, options=options, each=each) for rank in range(num)
    ]
    try:
        said = [process.communicate(timeout=timeout_s)[1] for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait(timeout=10)
    return [
        Plain(process.returncode, text, process.pid) for text, process in zip(said, processes, strict=True)
    ]


def _environment(rank: int, num: int, port: str) -> dict[str, str]:
    return {
        **os.environ,
        "RANK": str(rank),
        "WORLD_SIZE": str(num),
        "LOCAL_RANK": str(rank),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": port,
        "OMP_NUM_THREADS": "1",
    }


def _filled(variables: Mapping[str, str], rank: int) -> dict[str, str]:
    return {name: value.replace("RANK", str(rank)) for name, value in variables.items()}
