"""The warm process: read a request a line, fork its ranks, wait for them, answer a line.

Runs as ``python -m runtime.processes.fork_server``. A forked rank leaves the serving loop and runs its
scenario at the top of the stack, so that it ends as a script ends: exception hook, ``atexit``, finalisation.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch.distributed
import torch.nn.parallel

from .ports import free_port

Job = Callable[[], None]


def serve() -> Job:
    """Answer requests until the input ends; in a forked rank, return what it has to do."""
    gc.freeze()  # forked ranks need not copy what never changes
    answers = os.dup(1)
    os.dup2(2, 1)
    os.write(answers, b"ready\n")
    for line in iter(sys.stdin.buffer.readline, b""):
        request = json.loads(line)
        folder = Path(tempfile.mkdtemp())
        started_s = time.monotonic()
        pids = {}
        port = free_port()
        store_host = fork_store_host(port) if request["agent_store"] else 0
        for rank in range(request["ranks"]):
            pid = os.fork()
            if pid == 0:
                os.close(answers)
                return become_rank(request, rank, port, folder)
            pids[pid] = rank
        answer = wait(pids, request["timeout_s"], started_s, folder)
        if store_host:
            os.kill(store_host, signal.SIGKILL)
            os.waitpid(store_host, 0)
        shutil.rmtree(folder, ignore_errors=True)
        os.write(answers, json.dumps(answer).encode() + b"\n")
    sys.exit(0)


def fork_store_host(port: int) -> int:
    """A process that holds the store, as torchrun's agent does."""
    ready, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        store = torch.distributed.TCPStore("127.0.0.1", port, is_master=True, wait_for_workers=False)
        os.write(writing, b"x")
        time.sleep(3600)
        os._exit(int(store is None))
    os.read(ready, 1)
    os.close(ready)
    os.close(writing)
    return pid


def become_rank(request: dict[str, Any], rank: int, port: int, folder: Path) -> Job:
    """Give a forked process its streams, environment and job."""
    os.setpgid(0, 0)
    for number, name in ((1, f"out{rank}"), (2, "err" if request["one_stderr"] else f"err{rank}")):
        os.dup2(os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_APPEND), number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.environ.update(
        RANK=str(rank),
        LOCAL_RANK=str(rank),
        WORLD_SIZE=str(request["ranks"]),
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT=str(port),
        TORCHELASTIC_USE_AGENT_STORE=str(request["agent_store"]),
        **{name: value.replace("RANK", str(rank)) for name, value in request["env"].items()},
    )
    if request["folder"] is not None:
        os.chdir(request["folder"])
    module, _, name = request["scenario"].partition(":")
    arguments = request["arguments"]
    return lambda: getattr(importlib.import_module(f"runtime.scenarios.{module}"), name)(**arguments)


def read(path: Path) -> str:
    return path.read_text(errors="replace") if path.exists() else ""


def wait(pids: dict[int, int], timeout_s: float, started_s: float, folder: Path) -> dict[str, Any]:
    """Wait for every rank, kill what is left at the timeout, count what the ranks left behind."""
    ended: dict[int, tuple[int | None, float]] = {}
    while len(ended) < len(pids):
        now_s = time.monotonic() - started_s
        for pid in set(pids) - set(ended):
            found, status = os.waitpid(pid, os.WNOHANG)
            if found:
                ended[pid] = (os.waitstatus_to_exitcode(status), now_s)
        if len(ended) < len(pids) and now_s > timeout_s:
            for hung in set(pids) - set(ended):
                os.kill(hung, signal.SIGKILL)
                os.waitpid(hung, 0)
                ended[hung] = (None, now_s)
        time.sleep(0.01)
    num_left_over = 0
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
            num_left_over += 1
    return {
        "seconds": time.monotonic() - started_s,
        "started_s": started_s,
        "err": read(folder / "err"),
        "num_left_over": num_left_over,
        "ranks": [
            {
                "rank": rank,
                "code": ended[pid][0],
                "seconds": ended[pid][1],
                "out": read(folder / f"out{rank}"),
                "err": read(folder / f"err{rank}"),
            }
            for pid, rank in pids.items()
        ],
    }


if __name__ == "__main__":
    job = serve()
    job()
