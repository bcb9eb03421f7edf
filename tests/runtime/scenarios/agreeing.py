"""``sync_should_stop``, ``barrier`` and ``main_process_first`` on real ranks."""

from __future__ import annotations

import time
from typing import Any

import torch
import torch.distributed as dist

import spmdguard
from spmdguard.group.world import world

from .parts import restart_gloo, say, start_gloo


def fail(*_: Any) -> None:
    raise OSError("upload")


def stop_loop(
    ask_rank: int = 0, ask_step: int = 3, every_n_steps: int = 1, overlap: bool = False, side: bool = False
) -> None:
    """A rank defers an error in a step; all ranks say in which step they left and why."""
    rank = start_gloo()
    if side:
        use_side_group()
    step = 0
    for step in range(1, 9):
        dist.all_reduce(torch.ones(1))
        if (rank, step) == (ask_rank, ask_step):
            spmdguard.try_or_defer(fail)
        if spmdguard.sync_should_stop(every_n_steps=every_n_steps, overlap=overlap):
            break
    say("left in step", step, "|", spmdguard.stop_reason())
    spmdguard.barrier("end")
    spmdguard.destroy_process_group()


def use_side_group() -> None:
    """Pretend that the default group cannot move CPU tensors, as a group of NCCL alone."""
    from spmdguard.group import channel

    channel.moves_cpu_tensors = lambda group: False  # type: ignore[assignment]  # for this process


def several_ask(num_asking: int) -> None:
    """Several ranks ask in the same step, by error and by argument."""
    rank = start_gloo()
    if rank < num_asking:
        spmdguard.try_or_defer(fail)
    say(spmdguard.sync_should_stop(), sorted((spmdguard.stop_reason() or no_reason()).texts.items()))
    say(spmdguard.sync_should_stop(rank == 1), sorted((spmdguard.stop_reason() or no_reason()).ranks))
    try:
        spmdguard.raise_if_deferred_error()
    except OSError:
        say(spmdguard.sync_should_stop(False))
    else:
        say(spmdguard.sync_should_stop(False))
    spmdguard.destroy_process_group()


def no_reason() -> spmdguard.StopReason:
    return spmdguard.StopReason({}, 0)


def on_sub_groups() -> None:
    """Two halves agree for themselves; asking for a group of others is an error."""
    rank = start_gloo()
    halves = [dist.new_group([0, 1]), dist.new_group([2, 3])]
    verdict = spmdguard.sync_should_stop(rank == 1, group=halves[rank // 2])
    say("half", rank // 2, verdict, (spmdguard.stop_reason() or no_reason()).ranks)
    try:
        spmdguard.sync_should_stop(group=halves[1 - rank // 2])
    except ValueError as error:
        say(str(error).split(",")[0])
    spmdguard.barrier()
    spmdguard.destroy_process_group()


def missing_ranks(operation: str, missing: list[int], stay_s: float = 8.0) -> None:
    """Some ranks never come; the others get an error that names them."""
    rank = start_gloo(3.0)
    dist.barrier()
    if rank in missing:
        time.sleep(stay_s)
        return
    call: Any = {
        "sync_should_stop": spmdguard.sync_should_stop,
        "barrier 'x'": lambda: spmdguard.barrier("x"),
    }[operation]
    try:
        call()
    except spmdguard.RanksMissing as error:
        say(error.operation, list(error.missing or ()), str(error).splitlines()[0])
    try:
        spmdguard.barrier()
    except spmdguard.CommunicationBroken as error:
        say("then", error.failed)


def out_of_step(how: str) -> None:
    """Rank 0 is a call ahead of the other, or in another collective."""
    rank = start_gloo(5.0)
    spmdguard.sync_should_stop()
    if rank == 0 and how == "a call ahead":
        channel = world().channel()
        assert channel is not None
        channel.max_int32(3)
        return
    if rank == 0:
        dist.all_reduce(torch.full((1,), 7.5), op=dist.ReduceOp.MAX)
        return
    try:
        spmdguard.sync_should_stop()
    except spmdguard.RanksOutOfStep as error:
        say(str(error).splitlines()[1].strip())


def first_then_others(fail_on: int = -1) -> None:
    """The main process first; a failure on one rank leaves on all."""
    rank = start_gloo(20.0)
    try:
        with spmdguard.main_process_first():
            say("enter", rank, f"{time.time():.6f}")
            if rank == 0:
                time.sleep(0.3)
            if rank == fail_on:
                raise OSError("no data")
            say("leave", rank, f"{time.time():.6f}")
    except OSError as error:
        say("own", error)
    except spmdguard.OtherRanksFailed as error:
        say("other", error.failures)
    spmdguard.barrier("end")
    spmdguard.destroy_process_group()


def rebuild() -> None:
    """After a failure only a new group, and the documented call, allow communication again."""
    start_gloo(20.0)

    @spmdguard.collective
    def broken() -> None:
        raise OSError("lost")

    try:
        broken()
    except OSError as error:
        say(error.__notes__[0])  # type: ignore[attr-defined]  # since Python 3.11
    for attempt in ("same group", "new group"):
        try:
            spmdguard.resume_communication()
            say(attempt, "resumed", spmdguard.sync_should_stop())
        except spmdguard.CommunicationBroken as error:
            say(attempt, "refused", error.failure)
        if attempt == "same group":
            spmdguard.destroy_process_group()
            restart_gloo(1)
    spmdguard.destroy_process_group()


def exchange_texts(texts: list[str]) -> None:
    """Rank r gives one text after another, the r-th and those after it; says whether each exchange is right."""
    rank = start_gloo()
    channel = world().channel()
    assert channel is not None
    size = dist.get_world_size()
    for turn in range(len(texts)):
        expected = [texts[(turn + each) % len(texts)] for each in range(size)]
        say(channel.gather_texts(expected[rank]) == expected)
    spmdguard.destroy_process_group()
