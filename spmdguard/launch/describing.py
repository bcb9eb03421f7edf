"""Processes in words: a few one by one, many as ranges of ranks by host."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

from spmdguard.format import name_ranks_by_host
from spmdguard.launch.identity import Identity

__all__ = ["MAX_NAMED", "describe_groups", "describe_members", "group_by", "limit_hosts", "order_of"]

MAX_NAMED = 4
_MAX_HOSTS = 12


def describe_members(processes: Sequence[Identity]) -> str:
    """A few processes one by one with host and process id, many as ranges of ranks by host."""
    if len(processes) <= MAX_NAMED:
        return ", ".join(process.describe() for process in processes)
    hosts = {process.rank: process.host for process in processes if process.rank is not None}
    shown = [limit_hosts(name_ranks_by_host(hosts))] if hosts else []
    nameless = [process for process in processes if process.rank is None]
    if nameless:
        more = f" and {len(nameless) - 1} more" if len(nameless) > 1 else ""
        shown.append(f"{nameless[0].describe()}{more}")
    return ", ".join(shown)


def limit_hosts(text: str) -> str:
    """Ranges of ranks by host, of which only the first hosts are shown."""
    parts = text.split("), ")
    if len(parts) <= _MAX_HOSTS:
        return text
    return f"{'), '.join(parts[:_MAX_HOSTS])}) and {len(parts) - _MAX_HOSTS} more hosts"


def group_by(processes: Iterable[Identity], key: Callable[[Identity], Hashable]) -> dict[str, list[Identity]]:
    """Processes by a value, in order of their smallest ranks."""
    groups: dict[str, list[Identity]] = {}
    for process in processes:
        groups.setdefault(str(key(process)), []).append(process)
    return dict(sorted(groups.items(), key=lambda item: min(order_of(member) for member in item[1])))


def order_of(process: Identity) -> tuple[int, str, int]:
    """By rank, then host and process."""
    return (-1 if process.rank is None else process.rank, process.host, process.pid)


def describe_groups(groups: Mapping[str, Sequence[Identity]]) -> str:
    """``"rank 0 (process 11 on host a): 2 | rank 1 (process 12 on host a): 3"``."""
    shown = [
        f"{describe_members(sorted(members, key=order_of))}: {value or 'not set'}"
        for value, members in list(groups.items())[:MAX_NAMED]
    ]
    if len(groups) > MAX_NAMED:
        shown.append(f"and {len(groups) - MAX_NAMED} other values")
    return " | ".join(shown)
