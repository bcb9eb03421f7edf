"""The wrong launches: what each process is given, and what every process must be told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Case:
    """One wrong launch.

    Attributes:
        name: for the table.
        processes: the environment of each process; ``ARGV`` are further arguments, ``SCRIPT`` other contents,
            ``AFTER`` how many must have met before it starts, ``FAKE_TORCH`` a version of torch that its
            metadata claims.
        code: the fault that every process is told first; where it differs, the one that some are told.
        others: codes that may come in its place on processes that cannot know more.
        named: indices of processes that every report must name by pid and host.
        at_once: whether it can be known before the deadline.
        torchrun: start one torchrun with these arguments instead of each process.
        taken: another job holds the port before the launch.
        survives: indices of processes that may go on.
    """

    name: str
    processes: Sequence[Mapping[str, str]]
    code: str
    others: tuple[str, ...] = ()
    named: tuple[int, ...] = ()
    at_once: bool = True
    torchrun: Sequence[str] = ()
    taken: bool = False
    survives: tuple[int, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


def rank(number: int, **more: str) -> dict[str, str]:
    """One process; even ranks run on host a, odd ones on host b."""
    host = "ab"[number % 2]
    return {"RANK": str(number), "LOCAL_RANK": "0", "WORLD_SIZE": "2", "SPMDGUARD_HOST": host, **more}


TWO = (rank(0), rank(1))
CASES = (
    Case(
        "missing rank",
        (rank(0, WORLD_SIZE="3"), rank(1, WORLD_SIZE="3")),
        "missing-rank",
        named=(0, 1),
        at_once=False,
    ),
    Case("duplicate rank 0", (rank(0), rank(0), rank(1)), "duplicate-rank", named=(0, 1)),
    Case("duplicate rank 1", (rank(0), rank(1), rank(1)), "duplicate-rank", named=(1, 2)),
    Case("WORLD_SIZE 2 and 3", (rank(0), rank(1, WORLD_SIZE="3")), "world-size-differs", named=(0, 1)),
    Case(
        "surplus process, late",
        (*TWO, rank(1, AFTER="2")),
        "surplus-process",
        named=(2,),
        survives=(0, 1),
        environment={"FAULT_STAY_S": "20"},
    ),
    Case("RANK >= WORLD_SIZE", (*TWO, rank(2)), "rank-too-large", named=(2,)),
    Case(
        "LOCAL_RANK beyond devices",
        (rank(0), rank(1, LOCAL_RANK="1")),
        "local-rank-beyond-devices",
        named=(1,),
        environment={"SPMDGUARD_NUM_DEVICES": "1"},
    ),
    Case(
        "torchrun and SLURM",
        (),
        "two-launchers",
        torchrun=("--nproc-per-node", "2"),
        environment={"SLURM_PROCID": "0", "SLURM_STEP_ID": "0", "SLURM_NTASKS": "2", "SLURM_LOCALID": "0"},
    ),
    Case(
        "torchrun and self-spawned children",
        (),
        "spawned-under-torchrun",
        torchrun=("--nproc-per-node", "2"),
        environment={"FAULT_SPAWN": "1", "FAULT_STAY_S": "3"},
    ),
    Case("wrong MASTER_PORT", (rank(0), rank(1, MASTER_PORT="other")), "port-differs", named=(0, 1)),
    Case("port taken by another job", TWO, "port-taken", taken=True),
    Case(
        "unresolvable MASTER_ADDR",
        (rank(0), rank(1, MASTER_ADDR="no-such-host.invalid")),
        "address-unresolvable",
        others=("port-differs",),
        named=(1,),
    ),
    Case("versions differ", (rank(0), rank(1, FAKE_TORCH="2.1.0")), "versions-differ", named=(0, 1)),
    Case("script differs", (rank(0), rank(1, SCRIPT="# changed")), "script-differs", named=(0, 1)),
    Case(
        "arguments differ",
        (rank(0, ARGV="--lr 1"), rank(1, ARGV="--lr 2")),
        "arguments-differ",
        named=(0, 1),
    ),
    Case("launched twice on one port", (*TWO, *TWO), "launched-twice", named=(0, 1, 2, 3)),
)
