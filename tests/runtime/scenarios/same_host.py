"""Ranks of one host that agree through shared memory."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

import spmdguard
from spmdguard.group import same_host
from spmdguard.group.channel import TorchChannel
from spmdguard.group.world import world

from .parts import restart_gloo, say, start_gloo


def find_channel(group: Any = None) -> TorchChannel:
    channel = world().channel(group)
    assert isinstance(channel, TorchChannel)
    return channel


def count_collectives() -> int:
    number = world().sequence_number()
    assert number is not None
    return number


def steps_without_gloo(refuse_on: int = -1) -> None:
    """How many collectives eight agreements take after the first; ``refuse_on`` cannot open the memory."""
    rank = start_gloo()
    if rank == refuse_on:

        def refuse(*_: Any) -> Any:
            raise PermissionError("/proc is closed")

        same_host.Ends = refuse  # type: ignore[assignment, misc]  # for this process
    spmdguard.sync_should_stop(overlap=True)
    before = count_collectives()
    for _ in range(8):
        spmdguard.sync_should_stop(overlap=True)
    say(count_collectives() - before)
    verdicts = [spmdguard.sync_should_stop(rank == 0 and step == 1, overlap=True) for step in range(3)]
    say(verdicts, spmdguard.stop_reason())
    spmdguard.run(lambda: None, exit_process=True)


def many_turns(num_turns: int) -> None:
    """Values that only the right turn of every rank gives, at random paces; how many were wrong."""
    rank = start_gloo()
    channel = find_channel()
    size, pace = dist.get_world_size(), random.Random(rank)
    num_wrong = 0
    for turn in range(num_turns):
        values = [hash((turn, each)) % 2**31 for each in range(size)]
        pending = channel.start_max_int32(values[rank])
        if pace.random() < 0.05:
            time.sleep(pace.random() / 500)
        num_wrong += pending.wait() != max(values)
    say("wrong", num_wrong)
    spmdguard.run(lambda: None, exit_process=True)


def one_does_not_come(how: str, group_timeout_s: float = 300.0) -> None:
    """Rank 1 does not come to the fourth agreement; the others say what they are told."""
    rank = start_gloo(group_timeout_s)
    for step in range(1, 6):
        if (rank, step) == (1, 4):
            if how == "killed":
                os.kill(os.getpid(), signal.SIGKILL)
            if how == "leaves":
                dist.destroy_process_group()
            time.sleep(8.0 if how == "leaves" else group_timeout_s + 8.0)  # the others are gone long before
            os._exit(0)
        try:
            spmdguard.sync_should_stop(overlap=True)
        except spmdguard.RanksMissing as error:
            say("step", step, list(error.missing or ()), error.failure.partition(": ")[2])
            os._exit(3)


def halves() -> None:
    """Two halves of the ranks stop at different steps."""
    rank = start_gloo()
    groups = [dist.new_group([0, 1]), dist.new_group([2, 3])]
    own = groups[rank // 2]
    for step in range(1, 9):
        dist.all_reduce(torch.ones(1), group=own)
        asks = (rank, step) in {(1, 2), (2, 5)}
        if spmdguard.sync_should_stop(asks, overlap=True, group=own):
            say(step, (spmdguard.stop_reason() or spmdguard.StopReason({}, 0)).ranks)
            break
    spmdguard.run(lambda: None, exit_process=True)


def again_after_a_new_group() -> None:
    """The agreements of a rebuilt group begin anew, and a forked child's copy of the group ends nothing."""
    start_gloo()
    for attempt in (1, 2):
        spmdguard.sync_should_stop(overlap=True)
        child = os.fork()
        if child == 0:
            shared = find_channel()._same_host
            assert shared is not None
            shared.leave()
            os._exit(0)
        os.waitpid(child, 0)
        say([spmdguard.sync_should_stop(step == 0, overlap=True) for step in range(2)])
        spmdguard.destroy_process_group()
        restart_gloo(attempt)
    spmdguard.destroy_process_group()


def num_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def groups_come_and_go(num_groups: int) -> None:
    """How many descriptors more are open after so many groups have agreed and been destroyed."""
    start_gloo()
    before = 0
    for number in range(num_groups + 1):
        group = dist.new_group()
        for _ in range(2):
            spmdguard.sync_should_stop(overlap=True, group=group)
        dist.destroy_process_group(group)
        del group
        spmdguard.sync_should_stop()
        if number == 0:
            before = num_descriptors()
    say("more", num_descriptors() - before < num_groups)
    spmdguard.run(lambda: None, exit_process=True)
