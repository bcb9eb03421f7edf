"""The measurements and the verdict as text and as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from spmdguard.format import name_ranks_by_host
from spmdguard.preflight.links.judging import Finding

__all__ = ["render_preflight", "to_data"]


def render_preflight(results: Sequence[Mapping[str, Any]], findings: Sequence[Finding]) -> str:
    """A table for each layer of collectives, the spread of the pairs, and the verdict."""
    hosts = {rank: str(result["host"]) for rank, result in enumerate(results)}
    count = len(set(hosts.values()))
    lines = [
        f"spmdguard preflight: {len(hosts)} rank{'' if len(hosts) == 1 else 's'}, {name_ranks_by_host(hosts)}"
    ]
    for layer in ("one host", "all hosts"):
        if layer == "all hosts" and count == 1:
            continue  # the same ranks again
        lines += ["", f"  {layer:<12} {'bytes':>10} {'slowest':>12} {'bandwidth':>12}"]
        for number, entry in enumerate(results[0][layer]):
            seconds = max(
                float(result[layer][number]["seconds"]) for result in results if number < len(result[layer])
            )
            rate = entry["bytes"] / seconds / 1e6 if seconds else 0.0
            lines.append(
                f"  {entry['operation']:<12} {entry['bytes']:>10} {seconds * 1e6:>9.0f} us {rate:>7.0f} MB/s"
            )
    lines += _render_pairs(results)
    if not findings:
        lines += ["", "verdict: nothing stands out"]
        if len(hosts) == 1:
            lines.append(
                "  one rank has no links: start one for each device, by torchrun ... -m spmdguard preflight"
            )
        return "\n".join([*lines, ""])
    lines += ["", "verdict:"]
    lines += [f"  {each.level} [{each.layer}] {each.who}: {each.text}" for each in findings]
    return "\n".join(lines) + "\n"


def _render_pairs(results: Sequence[Mapping[str, Any]]) -> list[str]:
    entries = [entry for result in results for entry in result["pairs"]]
    if not entries:
        return []
    rates = sorted(float(entry["bytes_s"]) for entry in entries)
    times = sorted(float(entry["latency_s"]) for entry in entries)
    middle = len(entries) // 2
    return [
        "",
        f"  pairs: {len(entries) // 2} measured, {times[0] * 1e6:.0f} to {times[-1] * 1e6:.0f} us one way "
        f"(median {times[middle] * 1e6:.0f}), {rates[0] / 1e6:.0f} to {rates[-1] / 1e6:.0f} MB/s "
        f"(median {rates[middle] / 1e6:.0f})",
    ]


def to_data(results: Sequence[Mapping[str, Any]], findings: Sequence[Finding]) -> dict[str, Any]:
    """Everything, for JSON."""
    verdict = "failed" if any(each.level == "failed" for each in findings) else "slow" if findings else "good"
    return {"verdict": verdict, "findings": [asdict(each) for each in findings], "ranks": list(results)}
