"""What the identities of all processes say together: who is missing, who claims too much, what differs.

Invariant: the verdict does not depend on the order of arrival, and each fault names its processes. Cost: linear in
the number of processes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence

from spmdguard.format import escape_text, name_ranks, name_ranks_by_host
from spmdguard.launch.describing import (
    MAX_NAMED,
    describe_groups,
    describe_members,
    group_by,
    limit_hosts,
    order_of,
)
from spmdguard.launch.faults import MAX_FAULTS, Fault, read_line
from spmdguard.launch.identity import Identity
from spmdguard.launch.neighbours import Neighbour, find_strays, read_neighbour
from spmdguard.launch.variables import MUST_AGREE

__all__ = ["Arrivals", "find_faults", "find_missing", "find_notes"]

_NO_FAULT_VERSIONS = ("driver",)


class Arrivals:
    """The processes that have come so far."""

    def __init__(self) -> None:
        self.processes: list[Identity] = []
        self.num_unreadable = 0
        self.unreadable = ""
        self.is_suspect = False
        self._ranks: set[int] = set()
        self._sizes: Counter[int] = Counter()

    def add(self, process: Identity) -> None:
        """One more process has come; ``is_suspect`` where ``find_faults`` may have something to say."""
        self.processes.append(process)
        same = _compared_values(process) == _compared_values(self.processes[0])
        self.is_suspect |= bool(process.faults) or not same or process.rank in self._ranks
        if process.rank is not None:
            self._ranks.add(process.rank)
        if process.world_size is not None:
            self._sizes[process.world_size] += 1

    def add_unreadable(self, reason: str) -> None:
        """A record that is no identity."""
        self.num_unreadable += 1
        self.is_suspect = True
        self.unreadable = reason

    @property
    def world_size(self) -> int:
        """The size that most processes claim; the smaller one of equals; 0 without any."""
        return min(self._sizes, key=lambda size: (-self._sizes[size], size), default=0)

    @property
    def is_complete(self) -> bool:
        """Whether every rank has come."""
        return 0 < self.world_size <= len(self._ranks) and not self.missing()

    def missing(self) -> list[int]:
        """Ranks that have not come."""
        return [rank for rank in range(self.world_size) if rank not in self._ranks]

    def awaited_neighbours(self, *, surplus: bool) -> list[str]:
        """Living processes of the same launch that have not come; with ``surplus`` those without a rank to fill."""
        known = {(process.host, process.pid) for process in self.processes}
        size = self.world_size
        return [
            other.describe()
            for process in self.processes
            for other in _neighbours_of(process)
            if other.address == process.address
            and (other.host, other.pid) not in known
            and (not surplus or other.rank in self._ranks or other.rank >= size)
        ]

    def strays(self) -> list[str]:
        """Processes of the same launch that claim a missing rank, but have an address that nobody serves."""
        missing = self.missing()
        return [
            f"{other.describe()} was started as rank {other.rank} and has MASTER_ADDR:MASTER_PORT "
            f"{other.address}, not {process.address}"
            for process in self.processes
            if process.beside
            for other in find_strays(process.address, process.world_size, missing, _neighbours_of(process))
        ]


def find_faults(arrivals: Arrivals, allowed: Collection[str] = ()) -> list[Fault]:
    """What is wrong with the processes that have come, the gravest first; nobody's absence is a fault here."""
    processes = arrivals.processes
    found: list[Fault] = []
    if arrivals.num_unreadable:
        title = f"{arrivals.num_unreadable} records in the store are none of this job's processes"
        found.append(Fault("unreadable-record", title, arrivals.unreadable))
    own = list(_find_own_faults(processes))
    found += own
    found += _find_disagreement("jobs-differ", "processes of different jobs met on one port", processes, _job)
    found += _find_disagreement(
        "world-size-differs", "ranks disagree on WORLD_SIZE", processes, lambda process: process.world_size
    )
    if not own:  # what a process knows of itself explains why it claims the rank of another
        found += _find_duplicates(processes, arrivals.world_size)
    for what, find in _COMPARED.items():
        if what not in allowed:
            found += find(processes)
    return found[:MAX_FAULTS]


def find_missing(arrivals: Arrivals, timeout_s: float) -> list[Fault]:
    """Who has not come, where it was expected, and what was started in its place."""
    missing = arrivals.missing()
    if not missing:
        return []
    saw = [f"{describe_members(arrivals.processes)} came within {timeout_s:g} s"]
    saw += _expect(missing, arrivals.processes)
    saw += _name_started(missing, arrivals.processes)
    strays = list(dict.fromkeys(arrivals.strays()))[:MAX_NAMED]
    title = f"{name_ranks(missing)} of {arrivals.world_size} did not come"
    return [Fault("port-differs" if strays else "missing-rank", title, "; ".join([*saw, *strays]))]


def find_notes(arrivals: Arrivals) -> list[str]:
    """What is worth a line but stops nobody."""
    notes = []
    for name in sorted({name for process in arrivals.processes for name in process.environment}):
        if name in MUST_AGREE or name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"):
            continue
        if name.startswith("CUDA_VISIBLE") or name.endswith("_IFNAME"):
            continue
        groups = group_by(arrivals.processes, _value_of("environment", name, ""))
        if len(groups) > 1:
            notes.append(f"{name} differs: {describe_groups(groups)}")
    drivers = group_by(arrivals.processes, lambda process: process.versions.get("driver", ""))
    if len(drivers) > 1:
        notes.append(f"driver versions differ: {describe_groups(drivers)}")
    return notes[:MAX_FAULTS]


def _compared_values(process: Identity) -> tuple[Hashable, ...]:
    return (
        process.job,
        process.world_size,
        process.script_hash,
        process.arguments_hash,
        tuple(process.versions.items()),
        tuple((name, value) for name, value in process.environment.items() if name in MUST_AGREE),
    )


def _find_own_faults(processes: Iterable[Identity]) -> Iterator[Fault]:
    """What processes found wrong with themselves; one fault of each kind, with all whom it concerns."""
    by_code: dict[str, dict[str, list[Identity]]] = {}
    for process in processes:
        for line in process.faults:
            by_code.setdefault(read_line(line).code, {}).setdefault(line, []).append(process)
    for code, by_line in by_code.items():
        members = sorted((member for each in by_line.values() for member in each), key=order_of)
        first = min(by_line, key=lambda line: min(order_of(member) for member in by_line[line]))
        title = read_line(first).title
        others = len(by_line) - 1
        more = f" (and {others} more of this kind)" if others else ""
        yield Fault(code, f"{title}{more}", describe_members(members))


def _find_duplicates(processes: Sequence[Identity], world_size: int) -> Iterator[Fault]:
    by_rank: dict[int, list[Identity]] = {}
    for process in sorted(processes, key=order_of):
        if process.rank is not None:
            by_rank.setdefault(process.rank, []).append(process)
    doubled = {rank: members for rank, members in sorted(by_rank.items()) if len(members) > 1}
    if not doubled:
        return
    saw = "; ".join(
        f"rank {rank}: {' and '.join(member.describe_process() for member in members[:MAX_NAMED])}"
        for rank, members in list(doubled.items())[:MAX_NAMED]
    )
    if world_size > 1 and len(doubled) == world_size:
        yield Fault("launched-twice", "the job was launched twice on one MASTER_PORT", saw)
        return
    num = max(len(members) for members in doubled.values())
    claimed = f"{name_ranks(doubled)} {'is' if len(doubled) == 1 else 'are'} claimed by {num} processes"
    yield Fault("duplicate-rank", f"{claimed}{' each' if len(doubled) > 1 else ''}", saw)


def _find_disagreement(
    code: str, title: str, processes: Sequence[Identity], key: Callable[[Identity], Hashable]
) -> Iterator[Fault]:
    groups = group_by([process for process in processes if key(process) is not None], key)
    if len(groups) > 1:
        yield Fault(code, title, describe_groups(groups))


def _job(process: Identity) -> str | None:
    return process.job or None


def _value_of(field: str, name: str, default: str) -> Callable[[Identity], str]:
    def find(process: Identity) -> str:
        value: str = getattr(process, field).get(name, default)
        return value

    return find


def _find_versions(processes: Sequence[Identity]) -> Iterator[Fault]:
    for package in sorted({name for process in processes for name in process.versions}):
        if package not in _NO_FAULT_VERSIONS:
            yield from _find_disagreement(
                "versions-differ",
                f"ranks run different versions of {escape_text(package, 40)}",
                processes,
                _value_of("versions", package, "none"),
            )


def _find_script(processes: Sequence[Identity]) -> Iterator[Fault]:
    groups = group_by(processes, lambda process: process.script_hash)
    if len(groups) > 1:
        paths = {value: members[0].script for value, members in groups.items()}
        named = {
            f"{paths[value] or 'no script'} ({value[:8] or '-'})": members
            for value, members in groups.items()
        }
        yield Fault("script-differs", "ranks run different scripts", describe_groups(named))


def _find_arguments(processes: Sequence[Identity]) -> Iterator[Fault]:
    groups = group_by(processes, lambda process: process.arguments_hash)
    if len(groups) < 2:
        return
    lists = [Counter(members[0].arguments) for members in groups.values()]
    common = lists[0]
    for each in lists[1:]:
        common = common & each
    names = sorted({item.rsplit("=", 1)[0] for each in lists for item in each - common})
    title = f"ranks were given different arguments: {', '.join(names[:8]) or 'in another order'}"
    named = {
        f"{len(members[0].arguments)} arguments ({value[:8]})": members for value, members in groups.items()
    }
    yield Fault("arguments-differ", title, describe_groups(named))


def _find_environment(processes: Sequence[Identity]) -> Iterator[Fault]:
    for name in sorted({name for process in processes for name in process.environment} & MUST_AGREE):
        yield from _find_disagreement(
            "environment-differs",
            f"ranks disagree on {name}",
            processes,
            _value_of("environment", name, "not set"),
        )


_COMPARED: Mapping[str, Callable[[Sequence[Identity]], Iterator[Fault]]] = {
    "versions": _find_versions,
    "script": _find_script,
    "arguments": _find_arguments,
    "environment": _find_environment,
}


def _expect(missing: Sequence[int], processes: Iterable[Identity]) -> Iterator[str]:
    """Hosts of missing ranks, where the ranks beside them on a full host say so."""
    hosts: dict[int, str] = {}
    for process in processes:
        size = process.local_world_size
        if process.rank is None or process.local_rank is None or not size:
            continue
        first = process.rank - process.local_rank
        hosts.update(dict.fromkeys(range(first, first + min(size, 1024)), process.host))
    expected = {rank: hosts[rank] for rank in missing if rank in hosts}
    if expected:
        yield f"expected: {limit_hosts(name_ranks_by_host(expected))}"
    if len(expected) < len(missing) and expected:
        yield f"no process came from the hosts of {name_ranks(rank for rank in missing if rank not in expected)}"


def _neighbours_of(process: Identity) -> list[Neighbour]:
    return [other for other in map(read_neighbour, process.beside) if other is not None]


def _name_started(missing: Sequence[int], processes: Sequence[Identity]) -> list[str]:
    """Processes that a launcher started for a missing rank, as those beside it saw them."""
    named = {
        f"{other.describe()} was started as rank {other.rank}": None
        for process in processes
        for other in _neighbours_of(process)
        if other.rank in missing and other.address == process.address
    }
    return list(named)[:MAX_NAMED]
