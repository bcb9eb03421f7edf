"""How soon peers that are blocked in a collective leave after one rank has failed, with the watch and without.

``python -m tests.benchmarks.abort_propagation`` starts worlds of 2 to 16 gloo ranks as plain processes (forked
from a process that has imported torch). Rank 1 raises and ends; raises and stays, as where teardown hangs; is
killed; or is stopped. The time from there to the end of each other rank is printed, with the watch (stall limit
2 s for the stopped rank) and bare (bounded; gloo's own timeout is 5 minutes there).
"""

from __future__ import annotations

import argparse
import re
import statistics

from tests.runtime.processes import Ranks, Zygote

ACTS = ("raise", "raise_and_stay", "kill", "stop")
STALL_LIMIT_S = 2.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, nargs="*", default=[2, 4, 8, 16])
    parser.add_argument("--acts", nargs="*", default=list(ACTS))
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--bound", type=float, default=10.0, help="seconds after which a run is ended")
    options = parser.parse_args()
    zygote = Zygote()
    try:
        print("| ranks | rank 1 | with the watch: median, p95 s | said the cause | bare: median, largest s |")
        print("|---|---|---|---|---|")
        for act in options.acts:
            for num in options.ranks:
                show(zygote, act, num, options.repeat, options.bound)
    finally:
        zygote.close()


def show(zygote: Zygote, act: str, num: int, repeat: int, bound_s: float) -> None:
    """One line of the table."""
    delays: list[float] = []
    told = 0
    for _ in range(repeat):
        ended = run(zygote, act, num, bound_s, watched=True)
        delays += delays_of(ended, STALL_LIMIT_S if act == "stop" else 0.0)
        told += len(set(re.findall(r"rank (\d+) (?:leaves|is a victim)", ended.err)) - {"1"})
    bare = run(zygote, act, num, bound_s, watched=False)
    bare_delays = delays_of(bare, 0.0)
    hung = len(set(bare.hung) - {1})
    others = f", {hung} still waiting" if hung else ""
    print(
        f"| {num} | {act} | {statistics.median(delays):.2f}, {percentile(delays, 0.95):.2f} "
        f"| {told} of {len(delays)} | {statistics.median(bare_delays):.2f}, {max(bare_delays):.2f}{others} |",
        flush=True,
    )


def run(zygote: Zygote, act: str, num: int, bound_s: float, *, watched: bool) -> Ranks:
    """One world."""
    limit = STALL_LIMIT_S if act == "stop" else 60.0
    return zygote.run(
        "stalling:part",
        ranks=num,
        timeout_s=bound_s + num / 2,
        one_stderr=True,
        act=act,
        stall_limit=limit,
        watched=watched,
    )


def delays_of(ended: Ranks, waited_s: float) -> list[float]:
    """Seconds from the act, and from the limit where it is one, to the end of each rank but rank 1."""
    acted = re.search(r"acting at ([\d.]+)", ended[1].out)
    if acted is None:
        raise RuntimeError(f"rank 1 did nothing\n{ended.report()}")
    since_s = float(acted[1]) - ended.started_s + waited_s
    return [each.seconds - since_s for each in ended.ranks if each.rank != 1]


def percentile(values: list[float], share: float) -> float:
    """The smallest value that at least this share of all do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


if __name__ == "__main__":
    main()
