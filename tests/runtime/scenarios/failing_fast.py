"""Errors that end a real rank at once."""

from __future__ import annotations

import asyncio
import errno
import resource
import threading
import time
from typing import Any

import torch
import torch.distributed as dist

import spmdguard

from .ending import Reporter
from .parts import say, start_gloo


def exhaust_host() -> None:
    """A real allocation that the host refuses."""
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
    bytearray(64 << 30)


def exhaust_torch() -> None:
    """torch's own allocator on the host, refused."""
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
    torch.empty(64 << 30, dtype=torch.uint8)


def raise_device_error() -> None:
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")


def raise_other() -> None:
    raise OSError(errno.EIO, "disk is gone")


FAILURES: dict[str, Any] = {
    "MemoryError": exhaust_host,
    "torch on the host": exhaust_torch,
    "device": raise_device_error,
    "other": raise_other,
}


def train(how: str, fail: Any, failing: int) -> None:
    """Rank ``failing`` fails in step 2; the others are in the step's collective."""
    rank = start_gloo()
    for step in range(5):
        if rank == failing and step == 2:
            run_failing(how, fail)
        dist.all_reduce(torch.ones(1))
        say("finished step", step)
        time.sleep(0.05)


def run_failing(how: str, fail: Any) -> None:
    if how == "decorator":
        spmdguard.fail_fast(fail)()
    elif how == "context":
        with spmdguard.fail_fast(errors="out of memory"):
            fail()
    elif how == "thread":
        threading.Thread(target=fail).start()
        time.sleep(20)
    elif how == "task":
        asyncio.run(lose_a_task(fail))
    else:
        fail()


async def lose_a_task(fail: Any) -> None:
    """Nobody awaits the task that fails."""
    loop = asyncio.get_running_loop()
    spmdguard.fail_fast().install(loop)

    async def lost() -> None:
        fail()

    task = asyncio.ensure_future(lost())
    await asyncio.sleep(0.05)
    del task
    await asyncio.sleep(20)


def fails_fast(how: str, what: str, failing: int) -> None:
    """The whole life, with a reporter."""
    if how in ("excepthook", "thread"):
        spmdguard.fail_fast().install()
    if how == "excepthook":
        train(how, FAILURES[what], failing)
    else:
        spmdguard.run(lambda: train(how, FAILURES[what], failing), reporter=Reporter)
