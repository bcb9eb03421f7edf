"""Ranks that save checkpoints: in a loop, failing in a chosen phase, killed at an instant."""

from __future__ import annotations

import contextlib
import errno
import functools
import io
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any
from unittest import mock

import torch
import torch.distributed as dist

import spmdguard

from .killing import write_note
from .parts import say, start_gloo

NUM_NUMBERS = 5000


def write_own(path: Path, step: int) -> None:
    """One file a rank, with content that tells its step."""
    rank = dist.get_rank() if dist.is_initialized() else 0
    torch.save(torch.full((NUM_NUMBERS,), float(step)), path / f"rank{rank}.pt")


def kill_after(delay_s: float) -> None:
    """A child process kills this rank, whatever it is doing then."""
    parent = os.getpid()
    if os.fork() == 0:
        time.sleep(delay_s)
        os.kill(parent, signal.SIGKILL)
        os._exit(0)


def save_until_killed(delays_s: dict[str, float], first: int) -> None:
    """Save in a loop; each rank named is killed after its delay, counted from the first save on."""
    rank = start_gloo(20)
    found = spmdguard.latest_checkpoint("saved")
    say("found", None if found is None else found.name)
    dist.barrier()
    if str(rank) in delays_s:
        kill_after(delays_s[str(rank)])
    for step in range(first, first + 10_000):
        saved = spmdguard.save_checkpoint(
            "saved",
            step=step,
            save_state=lambda path, step=step: write_own(path, step),
            write_metadata=lambda path, step=step: write_note(path, step),
            keep_last=2,
        )
        assert saved is not None
        if rank == 0:
            say("saved", step)


class Boom(Exception):
    """Has a constructor of two arguments."""

    def __init__(self, rank: int, phase: str) -> None:
        super().__init__(f"{phase} on rank {rank}")


def fail_in_turn(phases: list[str], failing: int) -> None:
    """For each phase, in a directory of its own: four steps are saved; from step 2 on, the phase fails."""
    rank = start_gloo(20)
    for phase in phases:
        save_steps(phase, rank == failing, phase)
        found = spmdguard.latest_checkpoint(phase)
        left = [name for name in os.listdir(phase) if name.startswith(".spmdguard-saving")]
        say("deferred", phase, repr(spmdguard.deferred_error()), found and found.name, left)
        spmdguard.barrier()
        with contextlib.suppress(Exception):
            spmdguard.raise_if_deferred_error()
    spmdguard.destroy_process_group()


def save_steps(phase: str, fails: bool, directory: str) -> None:
    rank = dist.get_rank()

    def maybe(where: str, step: int) -> None:
        if where == phase and fails and step >= 2:
            raise Boom(rank, phase)

    @spmdguard.rank_local
    def save_locally(path: Path, step: int) -> None:
        maybe("local save", step)
        write_own(path, step)

    def save_state(path: Path, step: int) -> None:
        dist.barrier()
        maybe("save", step)
        save_locally(path, step)
        dist.barrier()

    def write_metadata(path: Path, step: int) -> None:
        maybe("metadata", step)
        if phase == "full device" and fails and step >= 2:
            Path("/dev/full").write_text("no space")
        write_note(path, step)

    for step in range(4):
        with FAULTS[phase]() if phase in FAULTS and fails and step >= 2 else contextlib.nullcontext():
            saved = spmdguard.save_checkpoint(
                directory,
                step=step,
                save_state=functools.partial(save_state, step=step),
                write_metadata=functools.partial(write_metadata, step=step),
                keep_last=1,
            )
        say(phase, step, saved and saved.name)
        if spmdguard.sync_should_stop():
            break


def fail_in(phase: str, failing: int) -> None:
    """The same for one phase, in a whole guarded run."""

    def train() -> None:
        save_steps(phase, start_gloo(20) == failing, "saved")

    spmdguard.run(train, exit_process=True)


def replace_call(
    owner: Any, name: str, fails: Callable[..., bool], code: int
) -> Callable[[], AbstractContextManager[Any]]:
    """A fault: inside, a call of the operating system fails with an error code."""
    original = getattr(owner, name)

    def replaced(*args: Any, **kwargs: Any) -> Any:
        if fails(*args, **kwargs):
            raise OSError(code, os.strerror(code), str(args[0]))
        return original(*args, **kwargs)

    return lambda: mock.patch.object(owner, name, replaced)


FAULTS: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "mkdir": replace_call(os, "mkdir", lambda path, *_: ".spmdguard-saving" in str(path), errno.ENOSPC),
    "fsync": replace_call(os, "fsync", lambda *_: True, errno.EIO),
    "rename": replace_call(os, "rename", lambda _, target: "/step-" in str(target), errno.ENOSPC),
    "manifest": replace_call(
        io, "open", lambda path, *_: str(path).endswith("manifest.json.part"), errno.ENOSPC
    ),
    "retention": replace_call(os, "rename", lambda _, target: "-trash-" in str(target), errno.EACCES),
    "pointer": replace_call(os, "replace", lambda _, target: str(target).endswith("-latest"), errno.EACCES),
}


def save_on(directory: str, as_nobody: bool = False, num_bytes: int = 0, everywhere: bool = False) -> None:
    """Try to save where it cannot work; then agree to stop and end."""
    rank = start_gloo(20)

    @spmdguard.rank_local
    def write(path: Path) -> None:
        if everywhere or rank == 0:
            (path / f"state{rank}").write_bytes(b"x" * num_bytes)

    def train() -> None:
        for step in range(1, 4):
            with acting_as_nobody() if as_nobody else contextlib.nullcontext():
                saved = spmdguard.save_checkpoint(directory, step=step, save_state=write)
            say("step", step, saved and saved.name)
            if spmdguard.sync_should_stop():
                break

    spmdguard.run(train, exit_process=True)


@contextlib.contextmanager
def acting_as_nobody() -> Iterator[None]:
    """Root may write everywhere; nobody may not. A save before has imported what nobody could not read."""
    spmdguard.save_checkpoint("allowed", step=0, save_state=lambda path: None)
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    yield
    if root:
        os.seteuid(0)


def differ_in_step() -> None:
    rank = start_gloo(20)
    try:
        spmdguard.save_checkpoint("saved", step=rank, save_state=lambda path: None)
    except ValueError as error:
        say(error)
    dist.barrier()
    spmdguard.destroy_process_group()


def look(directory: str, hidden_from: int = -1) -> None:
    """Every rank looks; one may not see the folder."""
    from spmdguard.checkpoint import files

    if start_gloo(20) == hidden_from:
        files.look_for = lambda path: False
    try:
        found = spmdguard.latest_checkpoint(directory, wait_timeout=0.3)
        say(found and found.name)
    except (OSError, spmdguard.OtherRanksFailed) as error:
        say(type(error).__name__, str(error).splitlines()[0])
    dist.barrier()
    spmdguard.destroy_process_group()


def save_unseen() -> None:
    """The folder that the main rank makes is not visible on rank 1."""
    from spmdguard.checkpoint import files, phases

    rank = start_gloo(20)
    phases.VISIBLE_TIMEOUT_S = 0.3
    phases.machine = lambda: f"host{rank}"
    if rank == 1:
        files.look_for = lambda path: False
    saved = spmdguard.save_checkpoint("saved", step=1, save_state=lambda path: say("called"))
    say(saved, spmdguard.deferred_error())
    say(sorted(os.listdir("saved")), spmdguard.sync_should_stop())
    spmdguard.destroy_process_group()


def save_in_sub_groups() -> None:
    """Two groups of two ranks save, each in its own directory, at the same time."""
    rank = start_gloo(20)
    groups = [dist.new_group([0, 1]), dist.new_group([2, 3])]
    own = rank // 2
    for step in (1, 2):
        saved = spmdguard.save_checkpoint(
            f"saved{own}", step=step, save_state=functools.partial(write_own, step=step), group=groups[own]
        )
    say(saved and sorted(file.name for file in saved.iterdir()))
    found = spmdguard.latest_checkpoint(f"saved{own}", group=groups[own])
    say(found == saved)
    spmdguard.destroy_process_group()


def save_on_two_hosts(fails: bool) -> None:
    """Ranks 0 and 1 on one host, 2 and 3 on another: the first of that one makes its files durable."""
    from spmdguard.checkpoint import files, phases

    rank = start_gloo(20)
    phases.machine = lambda: f"host{rank // 2}"
    sync_tree = files.sync_tree

    def told_sync_tree(folder: Path) -> None:
        say("synced", sorted(path.name for path in folder.iterdir()))
        if fails and rank == 2:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        sync_tree(folder)

    files.sync_tree = told_sync_tree

    def save(path: Path) -> None:
        write_own(path, 1)
        dist.barrier()

    saved = spmdguard.save_checkpoint("saved", step=1, save_state=save)
    say(saved and saved.name, spmdguard.has_deferred_error())
    dist.barrier()
    spmdguard.destroy_process_group()
