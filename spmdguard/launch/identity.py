"""Who this process is, as its launcher told it: from the environment and files alone, without importing torch.

An identity travels to other processes as JSON. What arrives is untrusted: types are checked, sizes are
capped, and text is escaped before it can reach a terminal.
"""

from __future__ import annotations

import json
import os
import platform
import socket
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from spmdguard.format import escape_text
from spmdguard.launch.neighbours import HOST_VARIABLE
from spmdguard.launch.program import describe_arguments, find_versions, hash_script

__all__ = ["MAX_IDENTITY_BYTES", "Identity", "find_identity", "read_identity"]

MAX_IDENTITY_BYTES = 16_384
_MAX_TEXT = 200
_MAX_ENTRIES = 64
_MAX_NUMBER = 2**31

_NUMBERS = {
    "rank": ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK"),
    "local_rank": ("LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID"),
    "world_size": ("WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE"),
    "local_world_size": ("LOCAL_WORLD_SIZE", "SLURM_NTASKS_PER_NODE", "OMPI_COMM_WORLD_LOCAL_SIZE"),
}
_LAUNCHERS = (
    ("torchrun", "TORCHELASTIC_RUN_ID"),
    ("deepspeed", "DEEPSPEED_LAUNCHER"),
    ("plain", "RANK"),
    ("slurm", "SLURM_PROCID"),
    ("mpi", "OMPI_COMM_WORLD_RANK"),
    ("mpi", "PMI_RANK"),
)
_JOB_VARIABLES = ("TORCHELASTIC_RUN_ID", "SLURM_JOB_ID")
_SELECTED_PREFIXES = ("NCCL_", "TORCH_NCCL_", "TORCH_DIST", "GLOO_", "UCC_", "FI_")
_SELECTED = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "CUDA_VISIBLE_DEVICES", "USE_LIBUV")
_SECRET_PARTS = ("TOKEN", "SECRET", "PASSWORD", "CREDENTIAL", "APIKEY", "API_KEY")


@dataclass(frozen=True)
class Identity:
    """One process of a job. ``None`` where its launcher did not say.

    Attributes:
        host: name of the host, or the value of ``SPMDGUARD_HOST``.
        pid: process id on that host.
        rank, local_rank, world_size, local_world_size: as the launcher's variables say.
        launcher: ``torchrun``, ``deepspeed``, ``slurm``, ``mpi``, ``plain`` (``RANK`` set by hand) or ``none``.
        job: the launcher's id of the job, or the empty string.
        restart: how many times torchrun has restarted the job.
        address: ``MASTER_ADDR:MASTER_PORT``.
        script, script_hash: path as started, and a hash of the file's content.
        arguments_hash: of all arguments, without those that launchers add per rank.
        arguments: name and short hash of each argument: says which one differs without telling its value.
        versions: of python, torch, cuda, nccl, driver, numpy and this package, where they exist.
        environment: variables of communication libraries, and the launcher's own as they were written.
        devices: the number of visible accelerators; None where unknown.
        faults: what this process itself found wrong, each as one line.
        beside: processes of the same launcher that claim a rank that is taken or too large.
    """

    host: str
    pid: int
    rank: int | None = None
    local_rank: int | None = None
    world_size: int | None = None
    local_world_size: int | None = None
    launcher: str = "none"
    job: str = ""
    restart: int = 0
    address: str = ""
    script: str = ""
    script_hash: str = ""
    arguments_hash: str = ""
    arguments: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    devices: int | None = None
    faults: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()

    def to_json(self) -> str:
        """One line of at most ``MAX_IDENTITY_BYTES``; entries are dropped from the end where it is too long."""
        data = _capped(asdict(self))
        text = _dump(data)
        while len(text) > MAX_IDENTITY_BYTES:
            longest = max(data, key=lambda name: len(_dump(data[name])))
            value = data[longest]
            kept = len(value) // 2
            data[longest] = dict(list(value.items())[:kept]) if isinstance(value, dict) else value[:kept]
            text = _dump(data)
        return text

    def describe_process(self) -> str:
        """``"process 4242 on host a"``."""
        return f"process {self.pid} on host {escape_text(self.host)}"

    def describe(self) -> str:
        """``"rank 3 (process 4242 on host a)"``."""
        rank = "a process without a rank" if self.rank is None else f"rank {self.rank}"
        return f"{rank} ({self.describe_process()})"


def find_identity(
    environment: Mapping[str, str] | None = None, *, argv: Sequence[str] | None = None, **found: Any
) -> Identity:
    """This process, from its environment; ``found`` are further fields that the caller has looked up."""
    env = os.environ if environment is None else environment
    script, script_hash = hash_script(argv)
    arguments, arguments_hash = describe_arguments(argv)
    numbers: dict[str, Any] = {name: _find_number(variables, env) for name, variables in _NUMBERS.items()}
    return Identity(
        host=env.get(HOST_VARIABLE) or socket.gethostname() or platform.node() or "unknown",
        pid=os.getpid(),
        **numbers,
        launcher=next((name for name, variable in _LAUNCHERS if env.get(variable)), "none"),
        job=next((env[name] for name in _JOB_VARIABLES if env.get(name)), ""),
        restart=_find_number(("TORCHELASTIC_RESTART_COUNT",), env) or 0,
        address=f"{env.get('MASTER_ADDR', '')}:{env.get('MASTER_PORT', '')}",
        script=script,
        script_hash=script_hash,
        arguments_hash=arguments_hash,
        arguments=arguments,
        versions=find_versions(),
        environment=select_environment(env),
        **found,
    )


def select_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Variables that steer communication; never one whose name sounds like a secret."""
    return {
        name: value[:_MAX_TEXT]
        for name, value in sorted(environment.items())
        if (name in _SELECTED or name.startswith(_SELECTED_PREFIXES))
        and not any(part in name.upper() for part in _SECRET_PARTS)
    }


def read_identity(text: str | bytes) -> Identity:
    """The identity in JSON that another process wrote.

    Raises:
        ValueError: it is too large, no JSON, or a field has another type than it should; the message says which.
    """
    if len(text) > MAX_IDENTITY_BYTES:
        raise ValueError(f"a record of {len(text)} bytes is over the limit of {MAX_IDENTITY_BYTES}")
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the record is no JSON ({type(error).__name__})") from None
    if not isinstance(data, dict):
        raise ValueError(f"the record is a {type(data).__name__}, no object")
    values: dict[str, Any] = {}
    for each in fields(Identity):
        if each.name in data:
            values[each.name] = _read_field(each.name, str(each.type), data[each.name])
    missing = {"host", "pid"} - set(values)
    if missing:
        raise ValueError(f"the record lacks {', '.join(sorted(missing))}")
    return Identity(**values)


def _read_field(name: str, kind: str, value: Any) -> Any:
    if value is None and "None" in kind:
        return None
    if kind.startswith("int"):
        if type(value) is int and -_MAX_NUMBER < value < _MAX_NUMBER:
            return value
    elif kind.startswith("str"):
        if isinstance(value, str):
            return escape_text(value, _MAX_TEXT)
    elif kind.startswith("tuple"):
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            return tuple(escape_text(item, _MAX_TEXT) for item in value[:_MAX_ENTRIES])
    elif isinstance(value, dict) and all(isinstance(item, str) for item in value.values()):
        entries = list(value.items())[:_MAX_ENTRIES]
        return {escape_text(key, _MAX_TEXT): escape_text(item, _MAX_TEXT) for key, item in entries}
    raise ValueError(f"{name} is {escape_text(repr(value), 60)}, expected {kind}")


def _find_number(names: Sequence[str], environment: Mapping[str, str]) -> int | None:
    """The first variable that is set decides, also where it holds no number."""
    for name in names:
        value = environment.get(name, "").strip()
        if value:
            return int(value) if value.lstrip("-").isdecimal() and len(value) < 10 else None
    return None


def _capped(data: dict[str, Any]) -> dict[str, Any]:
    for name, value in data.items():
        if isinstance(value, str):
            data[name] = value[:_MAX_TEXT]
        elif isinstance(value, tuple):
            data[name] = [item[:_MAX_TEXT] for item in value[:_MAX_ENTRIES]]
        elif isinstance(value, dict):
            entries = list(value.items())[:_MAX_ENTRIES]
            data[name] = {key[:_MAX_TEXT]: item[:_MAX_TEXT] for key, item in entries}
    return data


def _dump(data: Any) -> str:
    return json.dumps(data, separators=(",", ":"))
