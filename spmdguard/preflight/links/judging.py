"""From measurements to a verdict that names a rank, a host or a pair.

A value is compared with those of its own kind: pairs of one host with pairs of one host, pairs across hosts with
pairs across hosts. The reference is the upper quartile, not the median: with three ranks one bad rank spoils two
pairs of three. A rank most of whose pairs are bad is named instead of its pairs, and a host instead of its ranks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spmdguard.format import escape_text, name_ranks_by_host

__all__ = ["Finding", "judge"]

_SLOW_COMPUTE = 2.5
_SLOW_BANDWIDTH = 3.0
_SLOW_LATENCY = 5.0
_MIN_LOSS_S = 0.002
_MIN_COMPUTE_S = 0.002
_MOST = 0.66
_MAX_SKEW_S = 1.0
_MAX_VISIBLE_S = 5.0


@dataclass(frozen=True)
class Finding:
    """What is wrong: ``level`` is ``failed`` or ``slow``; ``layer`` where it was seen; who; and how it shows."""

    level: str
    layer: str
    who: str
    text: str


def judge(results: Sequence[Mapping[str, Any]]) -> list[Finding]:
    """Findings, failures first; ``results`` holds one entry for each rank, in order of ranks."""
    hosts = {rank: str(result["host"]) for rank, result in enumerate(results)}
    found = [
        *_judge_processes(results, hosts),
        *_judge_collectives(results, hosts),
        *_judge_pairs(results, hosts),
        *_judge_clocks(results, hosts),
        *_judge_folder(results, hosts),
    ]
    return sorted(dict.fromkeys(found), key=lambda finding: finding.level != "failed")


def _who(ranks: Iterable[int], hosts: Mapping[int, str]) -> str:
    return name_ranks_by_host({rank: hosts[rank] for rank in ranks if rank in hosts}) or "an unknown rank"


def _judge_processes(results: Sequence[Mapping[str, Any]], hosts: Mapping[int, str]) -> list[Finding]:
    layer = "one process"
    found = []
    for rank, result in enumerate(results):
        process = result["process"]
        if process["wrong"]:
            found.append(Finding("failed", layer, _who([rank], hosts), "computes or remembers wrong values"))
        if process["memory"]:
            found.append(
                Finding("failed", layer, _who([rank], hosts), f"cannot allocate {process['memory']}")
            )
    times = {rank: float(result["process"]["compute_s"]) for rank, result in enumerate(results)}
    reference = _quartile(times.values(), largest=False)
    slow = [
        rank for rank, s in times.items() if s > _SLOW_COMPUTE * reference and s - reference > _MIN_COMPUTE_S
    ]
    if slow:
        worst = max(times[rank] for rank in slow) / reference
        found.append(
            Finding("slow", layer, _who(slow, hosts), f"computes up to {worst:.1f} times slower than others")
        )
    return found


def _judge_collectives(results: Sequence[Mapping[str, Any]], hosts: Mapping[int, str]) -> list[Finding]:
    """Where all receivers but one agree on a sender it is the sender; else those that saw it."""
    found = []
    for layer in ("one host", "all hosts"):
        blamed: Counter[int] = Counter()
        seen: dict[int, set[str]] = {}
        for rank, result in enumerate(results):
            for entry in result[layer]:
                for other in entry["wrong"]:
                    blamed[other] += 1
                    seen.setdefault(rank, set()).add(f"{entry['operation']} of {entry['bytes']} bytes")
        if not seen:
            continue
        senders = [rank for rank in blamed if rank >= 0]
        operations = ", ".join(sorted(set().union(*seen.values()))[:3])
        if senders:
            text = f"its values came wrong in {operations}, as seen by {_who(seen, hosts)}"
            found.append(Finding("failed", layer, _who(senders, hosts), text))
        else:
            found.append(Finding("failed", layer, _who(seen, hosts), f"got wrong values from {operations}"))
    return found


def _judge_pairs(results: Sequence[Mapping[str, Any]], hosts: Mapping[int, str]) -> list[Finding]:
    merged: dict[tuple[int, int], dict[str, Any]] = {}
    wrong: dict[tuple[int, int], list[int]] = {}
    for result in results:
        for entry in result["pairs"]:
            pair = (int(entry["pair"][0]), int(entry["pair"][1]))
            wrong.setdefault(pair, []).extend(entry["wrong_at"])
            known = merged.setdefault(pair, dict(entry))
            known["latency_s"] = max(known["latency_s"], entry["latency_s"])
            known["bytes_s"] = min(known["bytes_s"], entry["bytes_s"])
    bad = {pair: 1.0 for pair, at in wrong.items() if at}
    found = _name_pairs("failed", bad, set(merged), hosts, "wrong values on")
    for across in (False, True):
        kind = {pair: entry for pair, entry in merged.items() if (hosts[pair[0]] != hosts[pair[1]]) is across}
        if len(kind) < 3:
            continue
        best = _quartile((entry["bytes_s"] for entry in kind.values()), largest=True)
        quick = _quartile((entry["latency_s"] for entry in kind.values()), largest=False)
        slow = {}
        for pair, entry in kind.items():
            thin, late = best / entry["bytes_s"], entry["latency_s"] / quick
            lost_s = entry["num_bytes"] / entry["bytes_s"] - entry["num_bytes"] / best
            is_thin = thin > _SLOW_BANDWIDTH and lost_s > _MIN_LOSS_S
            is_late = late > _SLOW_LATENCY and entry["latency_s"] - quick > _MIN_LOSS_S
            if is_thin or is_late:
                slow[pair] = max(thin, late)
        if slow:
            numbers = [kind[pair] for pair in slow]
            text = (
                f"down to {min(each['bytes_s'] for each in numbers) / 1e6:.0f} MB/s (others {best / 1e6:.0f}), "
                f"up to {max(each['latency_s'] for each in numbers) * 1e6:.0f} us (others {quick * 1e6:.0f}) on"
            )
            found += _name_pairs("slow", slow, set(kind), hosts, text)
    return found


def _name_pairs(
    level: str,
    bad: Mapping[tuple[int, int], float],
    pairs: set[tuple[int, int]],
    hosts: Mapping[int, str],
    text: str,
) -> list[Finding]:
    """The rank or host that explains most of how bad the pairs are, and the pairs that this leaves unexplained."""
    culprits: list[int] = []
    left = set(bad)
    while left:
        counts = Counter(rank for pair in left for rank in pair)
        weights = {rank: sum(bad[pair] for pair in left if rank in pair) for rank in counts}
        rank = max(counts, key=lambda rank: (weights[rank], counts[rank]))
        num_bad = counts[rank]
        num_pairs = sum(rank in pair for pair in pairs)
        if num_bad < 2 or num_bad < _MOST * num_pairs:
            break
        culprits.append(rank)
        left = {pair for pair in left if rank not in pair}
    found = []
    whole = {
        host
        for host in set(hosts.values())
        if len(set(hosts.values())) > 1 and _is_whole(host, culprits, hosts)
    }
    for host in sorted(whole):
        found.append(Finding(level, "pairs", f"host {escape_text(host)}", f"{text} its links"))
    single = [rank for rank in culprits if hosts[rank] not in whole]
    if single:
        found.append(Finding(level, "pairs", _who(single, hosts), f"{text} its links"))
    for one, other in sorted(left):
        who = f"the link between rank {one} (host {escape_text(hosts[one])}) and "
        who += f"rank {other} (host {escape_text(hosts[other])})"
        found.append(Finding(level, "pairs", who, f"{text} it"))
    return found


def _is_whole(host: str, culprits: Sequence[int], hosts: Mapping[int, str]) -> bool:
    ranks = [rank for rank, name in hosts.items() if name == host]
    return len(ranks) > 1 and set(ranks) <= set(culprits)


def _judge_clocks(results: Sequence[Mapping[str, Any]], hosts: Mapping[int, str]) -> list[Finding]:
    skewed = {rank: float(result["clock_s"]) for rank, result in enumerate(results)}
    bad = [rank for rank, offset in skewed.items() if abs(offset) > _MAX_SKEW_S]
    if not bad:
        return []
    worst = max((skewed[rank] for rank in bad), key=abs)
    text = f"clock up to {abs(worst):.1f} s {'ahead of' if worst > 0 else 'behind'} rank 0: logs will mislead"
    return [Finding("slow", "all hosts", _who(bad, hosts), text)]


def _judge_folder(results: Sequence[Mapping[str, Any]], hosts: Mapping[int, str]) -> list[Finding]:
    layer = "shared folder"
    delays = {rank: result["folder_s"] for rank, result in enumerate(results)}
    blind = [rank for rank, delay in delays.items() if delay is None]
    late = [rank for rank, delay in delays.items() if delay is not None and delay > _MAX_VISIBLE_S]
    found = []
    if blind:
        found.append(Finding("failed", layer, _who(blind, hosts), "never saw a file that rank 0 wrote"))
    if late:
        worst = max(float(delays[rank]) for rank in late)
        found.append(
            Finding("slow", layer, _who(late, hosts), f"saw a file of rank 0 up to {worst:.1f} s late")
        )
    return found


def _quartile(values: Iterable[float], *, largest: bool) -> float:
    """The value that a quarter of all are better than."""
    ordered = sorted(values, reverse=largest)
    return ordered[(len(ordered) - 1) // 4]
