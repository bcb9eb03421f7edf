"""One function per guarantee of the design, on real ranks; the details have tests of their own."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import threading
import traceback
import weakref
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

import spmdguard

from .parts import say, start_gloo
from .saving import write_own


class Work:
    """Rank-local work of every kind, failing where told."""

    def __init__(self, fails: bool) -> None:
        self.fails = fails

    def fail(self) -> None:
        if self.fails:
            raise OSError("rank-local")

    @spmdguard.rank_local
    def method(self) -> None:
        self.fail()

    @spmdguard.rank_local
    async def coroutine(self) -> None:
        await asyncio.sleep(0)
        self.fail()

    @spmdguard.rank_local
    def generator(self) -> Iterator[int]:
        yield 1
        self.fail()

    @spmdguard.rank_local
    async def async_generator(self) -> AsyncIterator[int]:
        yield 1
        self.fail()

    def every_kind(self) -> None:
        async def consume() -> None:
            async for _ in self.async_generator():
                pass

        self.method()
        asyncio.run(self.coroutine())
        list(self.generator())
        asyncio.run(consume())
        spmdguard.try_or_defer(self.fail)
        with spmdguard.deferring("block"):
            self.fail()


def deferred_exceptions_stay() -> None:
    """1: rank 0 fails in every kind of work, and still meets the others; an interrupt leaves."""
    rank = start_gloo()
    Work(fails=rank == 0).every_kind()
    total = torch.ones(1)
    dist.all_reduce(total)
    say("met", int(total), "deferred", spmdguard.has_deferred_error())
    spmdguard.destroy_process_group()
    for leaving in (KeyboardInterrupt(), SystemExit(), GeneratorExit()):
        try:
            spmdguard.try_or_defer(raise_it, leaving)
        except BaseException as left:
            say("left", left is leaving)


def raise_it(exc: BaseException) -> None:
    raise exc


def first_error_wins() -> None:
    """2: the first is kept without its locals, later ones are counted."""
    rank = start_gloo()
    tensor = torch.ones(10)
    freed = weakref.ref(tensor)

    @spmdguard.rank_local
    def use(held: torch.Tensor, message: str) -> None:
        doubled = held * 2
        raise OSError(message, doubled.numel())

    if rank == 0:
        use(tensor, "first")
        del tensor
        use(torch.ones(1), "second")
        say("freed", freed() is None)
    spmdguard.barrier()
    spmdguard.destroy_process_group()
    try:
        spmdguard.raise_if_deferred_error()
    except OSError as error:
        say(error.args[0], traceback.extract_tb(error.__traceback__)[-1].name, error.__notes__[-1][:25])  # type: ignore[attr-defined]


def original_is_raised() -> None:
    """3: the original object with its traceback, once; from threads too; a forked child starts empty."""
    start_gloo()
    error = OSError("original")
    worker = threading.Thread(target=spmdguard.try_or_defer, args=(raise_it, error))
    worker.start()
    worker.join(10)
    pid = os.fork()
    if pid == 0:
        os._exit(10 + spmdguard.has_deferred_error())
    say("child", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    spmdguard.destroy_process_group()
    try:
        spmdguard.raise_if_deferred_error()
    except OSError as raised:
        say("same", raised is error, traceback.extract_tb(raised.__traceback__)[-1].name)
    spmdguard.raise_if_deferred_error()
    say("cleared", not spmdguard.has_deferred_error())


def collectives_do_not_start() -> None:
    """4: rank 0 alone begins a collective in a region; it does not start, names all, and the ranks meet."""
    rank = start_gloo(20)

    @spmdguard.rank_local(name="log metrics")
    def log() -> None:
        total = torch.ones(1)
        dist.all_reduce(total)

    if rank == 0:
        log()
        error: Any = spmdguard.deferred_error()
        line = log.__wrapped__.__code__.co_firstlineno + 3  # type: ignore[attr-defined]  # set by wraps
        place = f"promises.py:{line} in log"
        say(error.operation, error.group, error.region, place in error.place)
    total = torch.ones(1)
    dist.all_reduce(total)
    say("met", int(total), spmdguard.sync_should_stop())
    spmdguard.destroy_process_group()


def collective_errors_leave() -> None:
    """5: unchanged, with a note, through rank-local work; later collectives refuse at once."""
    rank = start_gloo(20)
    error = ValueError("inside")

    @spmdguard.collective
    def gather() -> None:
        dist.all_reduce(torch.ones(1))
        if rank == 0:
            raise error
        dist.all_reduce(torch.ones(1))

    try:
        gather()
    except ValueError as raised:
        say("unchanged", raised is error, raised.__notes__)  # type: ignore[attr-defined]  # since Python 3.11
        for call in (
            gather,
            spmdguard.barrier,
            spmdguard.sync_should_stop,
            lambda: spmdguard.try_or_defer(gather),
        ):
            try:
                call()  # type: ignore[operator]  # callables of several signatures
            except spmdguard.CommunicationBroken as refused:
                say("refused", refused.failed, refused.failure)
        os._exit(1)
    except RuntimeError:
        say("lost its partner")


def teardown_comes_last(rank_fails: bool) -> None:
    """7: what is written, in order; teardown that never returns ends in a documented code."""
    from torch.distributed import distributed_c10d

    def hang() -> None:
        print("teardown begins", file=sys.stderr, flush=True)
        threading.Event().wait(60)

    distributed_c10d.destroy_process_group = hang

    def train() -> None:
        start_gloo()
        dist.barrier()
        if rank_fails:
            raise OSError("primary")
        spmdguard.try_or_defer(raise_it, OSError("deferred"))

    spmdguard.run(train, teardown_timeout=1.0)


def saves_one(step: int) -> None:
    """One more checkpoint in a directory that a killed run left; what it left unfinished is gone."""
    rank = start_gloo(30)
    saved = spmdguard.save_checkpoint("saved", step=step, save_state=lambda path: write_own(path, step))
    dist.barrier()
    left = [name for name in os.listdir("saved") if name.startswith(".spmdguard-saving")]
    say(saved and saved.name, left)
    assert rank < 2
    spmdguard.destroy_process_group()


def skips_together() -> None:
    """The directory cannot be used in the second save: a file stands in its place."""
    start_gloo(30)
    num_saved = 0

    def save_state(path: Path) -> None:
        nonlocal num_saved
        num_saved += 1

    first = spmdguard.save_checkpoint("saved", step=1, save_state=save_state)
    say(first and first.name)
    if dist.get_rank() == 0:
        Path("file").write_text("a file")
    dist.barrier()
    second = spmdguard.save_checkpoint("file/saved", step=2, save_state=save_state)
    say(second, "state saved", num_saved)
    found = spmdguard.latest_checkpoint("saved")
    say(found and found.name)
    say(type(spmdguard.deferred_error()).__name__)
    with contextlib.suppress(OSError):
        spmdguard.raise_if_deferred_error()
    spmdguard.destroy_process_group()
