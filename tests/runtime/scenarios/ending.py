"""Training that fails in a chosen place, under ``run``."""

from __future__ import annotations

import os
import sys
import time
from typing import Any

import torch
import torch.distributed as dist

import spmdguard

from .parts import say, start_gloo

NUM_STEPS = 4


class Upload(Exception):
    """Has a constructor of two arguments, and cannot be pickled."""

    def __init__(self, rank: int, step: int) -> None:
        super().__init__(f"upload of rank {rank} in step {step}")
        self.unpicklable = lambda: rank


@spmdguard.rank_local
def local_work(fails: bool, step: int) -> None:
    if fails:
        raise Upload(dist.get_rank(), step)


def plain_work(fails: bool, step: int) -> None:
    if fails:
        raise Upload(dist.get_rank(), step)


@spmdguard.collective
def together(fails: bool, step: int) -> None:
    """Two collectives; a failure inside lies between them."""
    dist.all_reduce(torch.ones(1))
    plain_work(fails, step)
    dist.all_reduce(torch.ones(1))


def train(kind: str, failing: list[int], step: int) -> str:
    """``kind``: where and how it fails: local/plain before, inside, local/plain after, none."""
    rank = start_gloo()
    for current in range(NUM_STEPS):
        due = rank in failing and current == step
        local_work(due and kind == "local before", current)
        plain_work(due and kind == "plain before", current)
        together(due and kind == "inside", current)
        local_work(due and kind == "local after", current)
        plain_work(due and kind == "plain after", current)
        say("finished step", current)
        if spmdguard.sync_should_stop():
            break
    return "trained"


def guarded(
    kind: str, failing: list[int], step: int, form: str = "function", exit_process: bool = False
) -> None:
    """The whole life, in one of the three forms."""
    options: dict[str, Any] = {
        "post_train": lambda: say("post_train"),
        "reporter": Reporter,
        "exit_process": exit_process,
    }
    if form == "function":
        say(spmdguard.run(lambda: train(kind, failing, step), **options))
    elif form == "context":
        with spmdguard.run(**options):
            say(train(kind, failing, step))
    else:
        say(spmdguard.run(**options)(train)(kind, failing, step))


class Reporter:
    """A tracker that says what it is told."""

    def __enter__(self) -> Reporter:
        say("reporter opened")
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, traceback: Any) -> None:
        say("reporter closed:", "FINISHED" if exc is None else f"FAILED {type(exc).__name__}")


def hung_teardown(fails: bool) -> None:
    """``destroy_process_group`` never returns on rank 0."""

    def hang() -> None:
        time.sleep(60)

    rank = int(os.environ["RANK"])
    if rank == 0:
        from torch.distributed import distributed_c10d

        distributed_c10d.destroy_process_group = hang

    def body() -> None:
        start_gloo()
        dist.barrier()
        if fails and rank == 0:
            raise OSError("root cause")
        if not fails:
            dist.barrier()

    spmdguard.run(body, reporter=Reporter, teardown_timeout=1.0)


def ends_by(how: str) -> None:
    """Ways to leave that are no ``Exception``, with and without ``exit_process``."""

    def body() -> None:
        start_gloo()
        dist.barrier()
        if how == "sys.exit(3)":
            sys.exit(3)
        if how == "interrupt":
            raise KeyboardInterrupt
        print("not flushed yet", end="")

    spmdguard.run(body, exit_process=True)


def post_train_fails() -> None:
    spmdguard.run(start_gloo, post_train=lambda: int("x"), reporter=Reporter)


class SlowReporter(Reporter):
    """Takes long to close, as an upload does."""

    def __exit__(self, *args: Any) -> None:
        super().__exit__(*args)
        time.sleep(6)


def slow_reporter() -> None:
    """The main rank fails between two collectives, and its reporter takes long."""

    def body() -> None:
        rank = start_gloo()
        group = dist.new_group()
        for step in range(3):
            dist.all_reduce(torch.ones(1), group=group)
            plain_work(rank == 0 and step == 1, step)

    spmdguard.run(body, reporter=SlowReporter)
