"""How far this process has come in each process group: sequence numbers, and torch's own record of calls.

torch's flight recorder keeps the last collectives of every group (gloo too since torch 2.9) with the Python
stack that began each, at about 2 us a collective. It must be switched on by an environment variable before
the first group is made. Nothing here keeps a reference to a group: gloo frees the peers when the last is gone.
"""

from __future__ import annotations

import pickle
import sys
import weakref
from collections.abc import MutableMapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from spmdguard.format import pack_ranks
from spmdguard.group.torch_access import loaded_c10d

RECORDER_VARIABLES = ("TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE")
RECORDER_SIZE = 256
_GLOO_PREFIXES = ("gloo:", "nccl:", "xccl:", "mpi:", "ucc:")
Frame = tuple[str, int, str]


@dataclass(frozen=True)
class GroupProgress:
    """One process group on this rank: its ranks, packed, and how many collectives it has begun."""

    name: str
    label: str
    members: str
    number: int | None


@dataclass(frozen=True)
class RecordedCall:
    """One collective or point-to-point call as torch recorded it; ``frames`` innermost first."""

    group: str
    label: str
    number: int
    operation: str
    frames: tuple[Frame, ...]
    done: bool
    point_to_point: bool
    began_s: float
    sizes: str
    thread: str


_static: weakref.WeakKeyDictionary[Any, tuple[str, str, str]] = weakref.WeakKeyDictionary()


def switch_on_recorder(environment: MutableMapping[str, str]) -> None:
    """Ask torch to record collectives, unless the user has said how many."""
    if not any(name in environment for name in RECORDER_VARIABLES):
        environment[_recorder_variable()] = str(RECORDER_SIZE)


def _recorder_variable() -> str:
    """torch warns of the older name where it knows the newer one."""
    try:
        major, minor = (int(part) for part in version("torch").split(".")[:2])
    except (PackageNotFoundError, ValueError):
        return RECORDER_VARIABLES[0]
    return RECORDER_VARIABLES[0] if (major, minor) >= (2, 9) else RECORDER_VARIABLES[1]


def find_groups() -> list[GroupProgress]:
    """Every process group of this process, the default one first; empty without torch.distributed."""
    c10d = loaded_c10d()
    if c10d is None:
        return []
    try:
        return [_describe(c10d, group) for group in list(c10d._world.pg_map)]
    except RuntimeError:  # groups were made or destroyed meanwhile, on another thread
        return []


def _describe(c10d: Any, group: Any) -> GroupProgress:
    known = _static.get(group)
    if known is None:
        name = str(c10d._world.pg_names.get(group, ""))
        label = str(getattr(group, "group_desc", "") or "")
        label = label if label not in ("", "undefined") else name
        known = (name, label, pack_ranks(sorted(c10d._world.pg_group_ranks.get(group, {}))))
        _static[group] = known
    try:
        number: int | None = int(group._get_sequence_number_for_group())
    except Exception:
        number = None
    return GroupProgress(*known, number)


def recorded_calls(limit: int) -> list[RecordedCall] | None:
    """The last ``limit`` calls that torch recorded, oldest first; None where it does not record."""
    entries = _dump()
    if entries is None:
        return None
    return [call for call in map(_read_entry, entries[-limit:]) if call is not None]


def _dump() -> list[dict[str, Any]] | None:
    """torch's record. It is a pickle that torch itself makes in this process; nothing of it comes from outside."""
    torch = sys.modules.get("torch")
    bindings = sys.modules.get("torch._C._distributed_c10d")
    dump = getattr(bindings, "_dump_fr_trace", None) or getattr(bindings, "_dump_nccl_trace", None)
    if torch is None or dump is None:
        return None
    # To name frames of compiled code torch looks for `torch._inductor`, which makes it import that lazily:
    # 2.5 s. Where nothing has imported it there is no compiled code; it is hidden for this one call.
    lazy: set[str] = getattr(torch, "_lazy_modules", set())
    hidden = "torch._inductor" not in sys.modules and "_inductor" in lazy
    if hidden:
        lazy.discard("_inductor")
    try:
        found = pickle.loads(dump(True, True, False))
    except Exception:
        return None
    finally:
        if hidden:
            lazy.add("_inductor")
    return list(found.get("entries", []))


def _read_entry(entry: dict[str, Any]) -> RecordedCall | None:
    try:
        name, label = entry["process_group"]
        point_to_point = bool(entry["is_p2p"])
        operation = str(entry["profiling_name"])
        for prefix in _GLOO_PREFIXES:
            operation = operation.removeprefix(prefix)
        return RecordedCall(
            group=str(name),
            label=str(label) if label not in ("", "undefined") else str(name),
            number=int(entry["p2p_seq_id"] if point_to_point else entry["collective_seq_id"]),
            operation=operation.split(" ")[0].lstrip("_"),
            frames=tuple((f["filename"], int(f["line"]), f["name"]) for f in entry.get("frames", ())),
            done=bool(entry.get("retired")) or entry.get("state") == "completed",
            point_to_point=point_to_point,
            began_s=int(entry["time_created_ns"]) / 1e9,
            sizes=str(entry.get("input_sizes", "")),
            thread=str(entry.get("thread_name", "")),
        )
    except (KeyError, TypeError, ValueError):
        return None
