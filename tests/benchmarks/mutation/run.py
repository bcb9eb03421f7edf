"""Inject defects into functions of real packages and count how many the linter finds.

python -m tests.benchmarks.mutation.run PACKAGE_FOLDER... [--functions 30] [--seed 1] [--list]

A mutant is found when the linter says something about the mutated function (at a line of it, or in a
trail through it) that it does not say of the file as it was: more reports of a code than before, or a report
in other words that touches the injected lines (where the file's own finding of that code gave way to it).
Mutants that do not parse are an error.
"""

from __future__ import annotations

import argparse
import ast
import random
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.benchmarks.mutation.mutants import MUTATIONS, Mutant
from tests.benchmarks.mutation.targets import Target, targets


@dataclass(frozen=True)
class Result:
    """One mutant and the codes of the reports it caused."""

    target: Target
    kind: str
    codes: tuple[str, ...]


def sample(packages: Sequence[Path], count: int, seed: int) -> list[Target]:
    """Targets drawn in turn from the packages, at most one of a function name in a file."""
    chooser = random.Random(seed)
    pools = []
    for package in packages:
        found = [t for path in sorted(package.rglob("*.py")) for t in targets(path)]
        chooser.shuffle(found)
        pools.append(found)
    chosen: list[Target] = []
    while len(chosen) < count and any(pools):
        for pool in pools:
            if pool and len(chosen) < count:
                chosen.append(pool.pop())
    return chosen


def findings(text: str, filename: str) -> list[Any]:
    """What the linter says of one file on its own."""
    from spmdguard_lint.config import Config
    from spmdguard_lint.engine import StandardInput, lint

    return list(lint((), Config(), stdin=StandardInput(text.encode(), filename)).findings)


def about(reports: Sequence[Any], first: int, last: int) -> Counter[tuple[str, str]]:
    """Codes and messages of the reports that touch lines ``first`` to ``last``, on the line or in a trail."""
    said: Counter[tuple[str, str]] = Counter()
    for report in reports:
        rows = [report.site.start.row, *(step.site.start.row for step in report.trail)]
        if any(first <= row <= last for row in rows):
            said[report.code, report.message] += 1
    return said


def by_code(said: Counter[tuple[str, str]]) -> Counter[str]:
    """How many reports there are of each code."""
    codes: Counter[str] = Counter()
    for (code, _message), number in said.items():
        codes[code] += number
    return codes


def judge(target: Target) -> list[Result]:
    """Every applicable mutant of a target with the codes of the reports that are new."""
    source = target.path.read_text(encoding="utf-8")
    lines = source.splitlines()
    base = about(findings(source, target.path.name), target.function_start, target.function_end)
    results = []
    for mutation in MUTATIONS:
        mutant: Mutant | None = mutation(lines, target)
        if mutant is None:
            continue
        ast.parse(mutant.text)
        now = findings(mutant.text, target.path.name)
        here = about(now, target.function_start, target.function_end + mutant.grown)
        more = by_code(here) - by_code(base)
        touching = about(now, mutant.first, mutant.last) - base
        results.append(Result(target, mutant.kind, tuple(sorted(more.keys() | by_code(touching).keys()))))
    return results


def main() -> int:
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("packages", nargs="+", type=Path)
    ask.add_argument("--functions", type=int, default=30)
    ask.add_argument("--seed", type=int, default=1)
    ask.add_argument("--list", action="store_true", help="print every mutant, not only those not found")
    args = ask.parse_args()
    chosen = sample(args.packages, args.functions, args.seed)
    results = [result for target in chosen for result in judge(target)]
    for r in results:
        if args.list or not r.codes:
            place = f"{r.target.path}:{r.target.start} {r.target.function} ({r.target.op})"
            print(f"{r.kind:20} {' '.join(r.codes) or 'NOT FOUND':16} {place}")
    total, found = Counter(r.kind for r in results), Counter(r.kind for r in results if r.codes)
    for kind, number in total.items():
        print(f"{kind:20} {found[kind]}/{number}")
    share = sum(found.values()) / len(results) if results else 0.0
    print(f"{len(chosen)} functions, {len(results)} mutants, found {sum(found.values())} ({share:.3f})")
    return 0 if share >= 0.95 else 1


if __name__ == "__main__":
    sys.exit(main())
