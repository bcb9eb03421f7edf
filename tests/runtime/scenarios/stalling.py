"""Runs that stall or break under the watch: one rank does something else, the others come to a collective."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
from typing import Any

import torch
import torch.distributed as dist

import spmdguard
from spmdguard.watch import starting

from .parts import start_gloo


def fail() -> None:
    raise ValueError("loss became \x1b[31mNaN")


def fail_and_stay() -> None:
    """An error in a process that then does not end, as one whose teardown hangs."""
    threading.Thread(target=say_acknowledged).start()
    raise ValueError("no space left")


def say_acknowledged() -> None:
    """Stay for ever, and say when the other ranks of the node need not wait for this one any more."""
    assert starting._running is not None
    board = starting._running._watch.board
    while not board.has(f"ack-{board.rank}"):
        time.sleep(0.02)
    print("acknowledged", flush=True)
    time.sleep(3600)


def hold_up_connections() -> None:
    """No further connection to a store comes to be, as where a name server does not answer."""
    for kind in (dist.PrefixStore, dist.TCPStore):
        setattr(kind, "clone", lambda store: time.sleep(3600))  # noqa: B010 - they are no attributes to mypy


def hold_gil() -> None:
    ctypes.PyDLL(None).sleep(7)


def wait_alone() -> None:
    time.sleep(60)


def nap() -> None:
    time.sleep(3)


def meet_elsewhere() -> None:
    dist.broadcast(torch.ones(3), 0)


def meet_larger() -> None:
    dist.all_reduce(torch.ones(4000))


ACTS: dict[str, Any] = {
    "raise": fail,
    "raise_and_stay": fail_and_stay,
    "exit": lambda: sys.exit(3),
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "stop": lambda: os.kill(os.getpid(), signal.SIGSTOP),
    "os_exit": lambda: os._exit(0),
    "sleep": wait_alone,
    "nap": nap,
    "gil": hold_gil,
    "mismatch": meet_elsewhere,
    "larger": meet_larger,
    "end": lambda: sys.exit(0),
}


def part(
    act: str = "",
    who: int = 1,
    stall_limit: float | None = 1.5,
    report_dir: str | None = None,
    node_ranks: int = 0,
    abort: bool = True,
    steps: int = 12,
    watched: bool = True,
    connects: bool = True,
) -> None:
    """Train a little, then rank ``who`` does ``act`` while the others reduce."""
    rank = int(os.environ["RANK"])
    if node_ranks:
        os.environ.update(SPMDGUARD_NODE=f"node{rank // node_ranks}", LOCAL_WORLD_SIZE=str(node_ranks))
    if watched:
        spmdguard.start_watch(stall_limit=stall_limit, report_dir=report_dir, abort=abort)
    if not connects:
        hold_up_connections()
    start_gloo()
    total = torch.ones(3)
    for _ in range(steps):
        dist.all_reduce(total)
        time.sleep(0.02)
    time.sleep(0.5)  # every rank's watch has joined
    if rank == who and act:
        print(f"acting at {time.monotonic():.3f}", flush=True)
        ACTS[act]()
    dist.all_reduce(total)
    dist.destroy_process_group()
    running = starting._running
    print("board", running._watch.board.folder if running is not None else "", flush=True)


def construct(act: str, stall_limit: float = 100.0) -> None:
    """Rank 1 does ``act`` while the others are in the construction of a model that checks itself on all ranks."""
    spmdguard.start_watch(stall_limit=stall_limit)
    rank = start_gloo()
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.BatchNorm1d(64))
    torch.nn.parallel.DistributedDataParallel(model)  # the first one imports for seconds
    if rank == 1:
        time.sleep(0.5)  # the others have come to the construction
        print(f"acting at {time.monotonic():.3f}", flush=True)
        ACTS[act]()
    torch.nn.parallel.DistributedDataParallel(model)


def wait_long(seconds: float = 1.0, steps: int = 3) -> None:
    """Rank 1 is late at every collective, by less than the limit."""
    spmdguard.start_watch(stall_limit=4.0)
    rank = start_gloo()
    for _ in range(steps):
        if rank == 1:
            time.sleep(seconds)
        dist.barrier()
    dist.destroy_process_group()


def record() -> None:
    """What torch recorded, in a group of one rank."""
    from spmdguard.group.progress import find_groups, recorded_calls, switch_on_recorder

    switch_on_recorder(os.environ)
    start_gloo()
    dist.all_reduce(torch.ones(2))
    dist.barrier()
    calls = recorded_calls(10) or []
    for call in calls:
        own = next(line for file, line, _ in call.frames if file == __file__)
        print("call", call.group, call.number, call.operation, call.done, own)
    for group in find_groups():
        print("group", group.name, group.members, group.number)
    print("inductor", "torch._inductor" in sys.modules)
    print("lazy", "_inductor" in torch._lazy_modules)
    dist.destroy_process_group()


def nested() -> None:
    """An error of a collective that the program turns into another one."""
    spmdguard.start_watch(stall_limit=20.0)
    rank = start_gloo()
    dist.barrier()
    time.sleep(0.5)
    if rank == 1:
        os._exit(0)
    try:
        dist.all_reduce(torch.ones(2))
    except RuntimeError as error:
        raise ValueError("training failed") from error


def late_agreement() -> None:
    """Rank 1 stays away while the other waits for what it says a step late, in no operation of torch."""
    spmdguard.start_watch(stall_limit=1.5)
    rank = start_gloo()
    for step in range(12):
        if (rank, step) == (1, 8):
            wait_alone()
        spmdguard.sync_should_stop(overlap=True)
        time.sleep(0.05)
