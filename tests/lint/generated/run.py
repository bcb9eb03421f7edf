"""The long run: generate, judge, lint, count; print minimal programs for what went wrong.

python -m tests.lint.generated.run --count 20000 --seed 1 [--jobs 2] [--fragment basic] [--minimise 5]
python -m tests.lint.generated.run --only 17 --seed 1            print program 17 with both answers
"""

from __future__ import annotations

import argparse
import gc
import multiprocessing
import sys
import time
from collections.abc import Iterable

from tests.lint.generated.compare import Tally, compare, kind_of, spmdguard_linter
from tests.lint.generated.minimise import minimise, stays
from tests.lint.generated.oracle import judge
from tests.lint.generated.programs import from_seed

CHUNK = 250


def run_chunk(job: tuple[int, int, int, bool]) -> Tally:
    """Compare one stretch; what the first program loads is left out of later searches for garbage."""
    seed, start, stop, full = job
    spmdguard_linter(from_seed(seed, start, full=full))
    gc.collect()
    gc.freeze()
    return compare(((i, from_seed(seed, i, full=full)) for i in range(start, stop)), spmdguard_linter)


def run(
    count: int, seed: int, *, full: bool = True, num_jobs: int = 1, start: int = 0, show: bool = False
) -> Tally:
    """Compare programs ``start`` to ``start + count`` of a series."""
    stop = start + count
    chunks = [(seed, low, min(low + CHUNK, stop), full) for low in range(start, stop, CHUNK)]
    tally = Tally()
    began = time.perf_counter()
    if num_jobs == 1:
        _collect(tally, map(run_chunk, chunks), began, show)
    else:
        with multiprocessing.get_context("spawn").Pool(num_jobs) as pool:
            _collect(tally, pool.imap(run_chunk, chunks), began, show)
    return tally


def _collect(tally: Tally, results: Iterable[Tally], began: float, show: bool) -> None:
    for part in results:
        tally.merge(part)
        if show:
            done, spent = sum(tally.kinds.values()), time.perf_counter() - began
            print(f"\r{done} programs, {tally.missed} missed, {done / spent:.0f}/s", end="", file=sys.stderr)
    if show:
        print(file=sys.stderr)


def minimal(tally: Tally, kind: str, limit: int, seed: int, full: bool) -> None:
    """Print minimal forms of the first programs of a kind."""
    for index in tally.examples.get(kind, [])[:limit]:
        source = minimise(from_seed(seed, index, full=full), stays(kind, spmdguard_linter))
        print(f"--- {kind}, program {index}")
        describe(source)


def describe(source: str) -> None:
    """Print a program with line numbers and both answers."""
    for row, line in enumerate(source.splitlines(), 1):
        print(f"{row:3} {line}")
    outcome, reports = judge(source), spmdguard_linter(source)
    print(outcome.text())
    print(
        "linter:",
        ", ".join(f"{r.code}@{r.row}" for r in reports) or "nothing",
        "->",
        kind_of(source, outcome, reports),
    )
    print()


def main() -> int:
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("--count", type=int, default=2000)
    ask.add_argument("--start", type=int, default=0)
    ask.add_argument("--seed", type=int, default=1)
    ask.add_argument("--jobs", type=int, default=1)
    ask.add_argument("--fragment", choices=("basic", "full"), default="full")
    ask.add_argument(
        "--minimise", type=int, default=0, metavar="N", help="print N minimal programs of each kind"
    )
    ask.add_argument("--only", type=int, metavar="INDEX", help="print one program with both answers")
    args = ask.parse_args()
    full = args.fragment == "full"
    if args.only is not None:
        describe(from_seed(args.seed, args.only, full=full))
        return 0
    tally = run(
        args.count, args.seed, full=full, num_jobs=args.jobs, start=args.start, show=sys.stderr.isatty()
    )
    print(tally.text())
    for kind in ("missed", "false alarm"):
        print(f"{kind}: programs {tally.examples.get(kind, [])[:40]}")
        minimal(tally, kind, args.minimise, args.seed, full)
    return 1 if tally.missed or tally.kinds["invalid"] else 0


if __name__ == "__main__":
    sys.exit(main())
