"""Every wrong launch, guarded and with bare torch, as a table.

    python -m tests.benchmarks.launch_faults.run --deadline 8 --bound 60

Exits 1 where a guarded launch falls short of what its case demands. ``after`` is the time from the call that starts
the process group until the last process was told, without importing torch.
"""

from __future__ import annotations

import argparse
from typing import Any

from .cases import CASES, Case
from .running import Told, find_shortfalls, launch


def row(case: Case, guarded: Told, bare: Told, bound_s: float, shortfalls: list[str]) -> str:
    told = [each for each in guarded.reports if each["failed"]]
    after = max((each["seconds"] for each in told), default=0.0)
    verdict = "; ".join(shortfalls) or "named"
    title = next((each["text"] for each in told if case.code in each["codes"]), "").splitlines()
    shown = shorten(title[0]) if title else "-"
    return f"| {case.name} | {verdict}, {after:.1f} s | {shown} | {describe_bare(bare, bound_s)} |"


def describe_bare(bare: Told, bound_s: float) -> str:
    failed = [each for each in bare.reports if each["failed"]]
    started = len(bare.reports) - len(failed)
    parts = []
    if failed:
        after = max(each["seconds"] for each in failed)
        parts.append(f"{len(failed)} fail after {after:.1f} s: {shorten(last_line(failed[0]))}")
    if started:
        parts.append(f"{started} start")
    if bare.num_waiting:
        parts.append(f"{bare.num_waiting} still wait after {bound_s:g} s")
    return "; ".join(parts) or "none reports"


def last_line(report: dict[str, Any]) -> str:
    lines = [line for line in report["text"].splitlines() if line.strip()]
    return lines[0] if lines else "-"


def shorten(text: str, limit: int = 100) -> str:
    text = text.replace("|", "/")
    return text if len(text) <= limit else f"{text[: limit - 3]}..."


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--deadline", type=float, default=8.0)
    parser.add_argument("--bound", type=float, default=60.0, help="seconds until a bare launch is given up")
    parser.add_argument("--only", default="", help="cases whose name holds this text")
    parser.add_argument("--no-bare", action="store_true")
    options = parser.parse_args()
    print("| launch | guarded | the first line of the report | bare torch |\n|---|---|---|---|", flush=True)
    failed = False
    for case in CASES:
        if options.only not in case.name:
            continue
        guarded = launch(case, guarded=True, deadline_s=options.deadline, bound_s=options.bound)
        shortfalls = find_shortfalls(case, guarded, options.deadline)
        failed |= bool(shortfalls)
        empty = Told([], [], 0, 0.0)
        bare = empty
        if not options.no_bare:
            bare = launch(case, guarded=False, deadline_s=options.deadline, bound_s=options.bound)
        print(row(case, guarded, bare, options.bound, shortfalls), flush=True)
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
