"""A scheduler's signals reach real ranks that train."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

import torch
import torch.distributed as dist

import spmdguard

from .parts import restart_gloo, say, start_gloo


def save(path: Path) -> None:
    (path / f"rank{dist.get_rank()}").write_text("state")


def preempted(who: list[int]) -> None:
    """Some ranks get SIGTERM in step 3; all save and end."""
    spmdguard.stop_on_signal(signal.SIGTERM)

    def train() -> None:
        rank = start_gloo()
        for step in range(1000):
            dist.all_reduce(torch.ones(1))
            if rank in who and step == 3:
                os.kill(os.getpid(), signal.SIGTERM)
            if spmdguard.sync_should_stop():
                break
        say("left after", step, spmdguard.stop_reason())
        saved = spmdguard.save_checkpoint("saved", step=step, save_state=save)
        say("saved", saved and saved.name)

    spmdguard.run(train, exit_process=True)


def rebuilt() -> None:
    """A group is lost and made anew, with a signal that came before."""
    spmdguard.stop_on_signal(signal.SIGUSR1)
    start_gloo(20.0)
    say(spmdguard.sync_should_stop(), spmdguard.sync_should_stop())
    os.kill(os.getpid(), signal.SIGUSR1)

    @spmdguard.collective
    def broken() -> None:
        raise OSError("lost")

    with contextlib.suppress(OSError):
        broken()
    try:
        spmdguard.sync_should_stop()
    except spmdguard.CommunicationBroken:
        say("refused")
    spmdguard.destroy_process_group()
    restart_gloo(1)
    spmdguard.resume_communication()
    say(spmdguard.sync_should_stop(), spmdguard.stop_reason())
    spmdguard.destroy_process_group()
