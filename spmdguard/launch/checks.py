"""What one process can find wrong with its own launch, before it meets the others."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator, Mapping

from spmdguard.launch.faults import Fault
from spmdguard.launch.identity import Identity

__all__ = ["check_identity"]

_RANK_VARIABLES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
_OTHER_RANKS = ("SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK")


def check_identity(
    me: Identity, environment: Mapping[str, str], parent: Callable[[], Mapping[str, str]]
) -> list[Fault]:
    """Faults of this process alone; ``parent`` gives the environment of its parent process."""
    return [
        *_check_numbers(me, environment),
        *_check_devices(me, environment),
        *_check_launchers(me, environment),
        *_check_spawned(environment, parent),
    ]


def _check_numbers(me: Identity, environment: Mapping[str, str]) -> Iterator[Fault]:
    unreadable = False
    for name in _RANK_VARIABLES:
        value = environment.get(name)
        if value is not None and not (value.strip().isdecimal() and len(value) < 10):
            unreadable = True
            yield Fault("bad-variable", f"{name} is {value!r}, expected a number")
    if unreadable:
        return
    if me.rank is None or me.world_size is None:
        lacking = "RANK" if me.rank is None else "WORLD_SIZE"
        yield Fault("bad-variable", f"{lacking} is not set")
        return
    if me.rank >= me.world_size:
        yield Fault("rank-too-large", f"RANK is {me.rank} but WORLD_SIZE is {me.world_size}")
    if me.local_rank is not None and me.local_world_size and me.local_rank >= me.local_world_size:
        yield Fault(
            "rank-too-large", f"LOCAL_RANK is {me.local_rank} but LOCAL_WORLD_SIZE is {me.local_world_size}"
        )


def _check_devices(me: Identity, environment: Mapping[str, str]) -> Iterator[Fault]:
    """One visible device for each task is how SLURM may bind them: then every local rank uses device 0."""
    if me.devices is None or me.local_rank is None or me.local_rank < me.devices:
        return
    visible = environment.get("CUDA_VISIBLE_DEVICES")
    if me.devices == 1 and visible and (visible != "0" or "SLURM_LOCALID" in environment):
        return
    seen = "is not set" if visible is None else f"is {visible!r}"
    devices = f"{me.devices} device{'' if me.devices == 1 else 's'}"
    yield Fault(
        "local-rank-beyond-devices",
        f"LOCAL_RANK is {me.local_rank} but {devices} can be seen (CUDA_VISIBLE_DEVICES {seen})",
    )


def _check_launchers(me: Identity, environment: Mapping[str, str]) -> Iterator[Fault]:
    """torchrun inside one srun task per host is right: then the tasks are torchrun's agents."""
    if environment.get("TORCHELASTIC_RUN_ID"):
        agents = environment.get("GROUP_WORLD_SIZE")
        tasks = environment.get("SLURM_STEP_NUM_TASKS") or environment.get("SLURM_NTASKS")
        in_step = "SLURM_STEP_ID" in environment or "SLURM_STEPID" in environment
        if "SLURM_PROCID" in environment and in_step and tasks and agents and tasks != agents:
            yield Fault(
                "two-launchers",
                f"srun started {tasks} tasks and torchrun runs {agents} of its agents: both set ranks here "
                f"(RANK={environment.get('RANK')}, SLURM_PROCID={environment['SLURM_PROCID']})",
            )
        agents_by_mpi = environment.get("OMPI_COMM_WORLD_SIZE")
        if agents_by_mpi and agents and agents_by_mpi != agents:
            yield Fault(
                "two-launchers", f"mpirun started {agents_by_mpi} processes and torchrun runs {agents} agents"
            )
        return
    if not environment.get("RANK"):
        return
    for name in _OTHER_RANKS:
        other = environment.get(name, "")
        alone = name == "SLURM_PROCID" and "SLURM_STEP_ID" not in environment
        if other.isdecimal() and not alone and me.rank is not None and int(other) != me.rank:
            yield Fault("two-launchers", f"RANK is {me.rank} but {name} is {other}")


def _check_spawned(
    environment: Mapping[str, str], parent: Callable[[], Mapping[str, str]]
) -> Iterator[Fault]:
    """A process that a rank of torchrun started itself is no rank of torchrun."""
    run = environment.get("TORCHELASTIC_RUN_ID")
    if not run:
        return
    rank = environment.get("RANK")
    of_parent = parent()
    if of_parent.get("TORCHELASTIC_RUN_ID") != run or not of_parent.get("RANK"):
        return  # the parent is torchrun's agent, or is not known
    same_rank = (of_parent["RANK"], of_parent.get("WORLD_SIZE")) == (rank, environment.get("WORLD_SIZE"))
    by_multiprocessing = multiprocessing.parent_process() is not None
    if same_rank and not by_multiprocessing:
        return  # the parent is a wrapper, such as a shell script
    how = "spawned with multiprocessing" if by_multiprocessing else "started"
    yield Fault(
        "spawned-under-torchrun",
        f"this process (RANK={rank}) was {how} by process {os.getppid()}, which is rank {of_parent['RANK']}: "
        "torchrun has started one process for each rank already",
    )
