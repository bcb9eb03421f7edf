"""Fuzz the whole linter: made-up and damaged projects, by number; no crash, no hang, no dead process.

python -m tests.lint.fuzz --count 50000 [--first 0] [--jobs 2] [--limit 30]
python -m tests.lint.fuzz --show SEED        prints the project of a seed
python -m tests.lint.fuzz --only SEED        runs one seed in this process

Seeds run in batches, each in a process of its own, so that a crash of the interpreter costs one batch and is
reported with its seed. A seed over the time limit counts as a hang. Exits 1 when anything was found.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from tests.lint.fuzzing.trial import Trial, project, run_trial

BATCH = 100


@dataclass
class Tally:
    """What a long run found so far."""

    num_trials: int = 0
    num_read: int = 0
    codes: Counter[str] = field(default_factory=Counter)
    crashes: dict[str, list[int]] = field(default_factory=dict)
    slowest_s: float = 0.0
    slowest_seed: int = 0

    def add(self, record: dict[str, object]) -> None:
        """Count one trial's record."""
        codes, seed = list(record["codes"]), int(str(record["seed"]))  # type: ignore[call-overload]
        self.num_trials += 1
        self.num_read += "SPG903" not in codes
        self.codes.update(codes)
        if record["place"]:
            self.crashes.setdefault(str(record["place"]), []).append(seed)
        seconds = float(str(record["seconds"]))
        if seconds > self.slowest_s:
            self.slowest_s, self.slowest_seed = seconds, seed


class TookTooLong(Exception):
    """A trial went over its time limit."""


def trial_within(seed: int, limit_s: float) -> Trial:
    """Run a trial; one over the limit is reported with the place where it was interrupted."""

    def interrupt(signum: int, frame: object) -> None:
        raise TookTooLong(f"over {limit_s:g} s")

    signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, limit_s)
    try:
        return run_trial(seed)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def worker(first: int, last: int, limit_s: float) -> None:
    """Run seeds one after the other, saying each before it starts and its record after."""
    for seed in range(first, last):
        print(f"start {seed}", flush=True)
        started = time.process_time()
        trial = trial_within(seed, limit_s)
        record = {"seed": seed, "codes": trial.codes, "place": trial.place}
        print(json.dumps({**record, "seconds": time.process_time() - started}), flush=True)


def batch(first: int, last: int, limit_s: float) -> list[dict[str, object]]:
    """The records of a batch; where its process died, a record says so and the rest goes on."""
    records: list[dict[str, object]] = []
    while first < last:
        command = [
            sys.executable,
            "-m",
            "tests.lint.fuzz",
            "--worker",
            f"{first}:{last}",
            "--limit",
            str(limit_s),
        ]
        timeout_s = (last - first) * limit_s + 60
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False)
            out, ended = done.stdout, f"process ended with {done.returncode}: {done.stderr[-300:]}"
        except subprocess.TimeoutExpired as expired:
            out, ended = (expired.stdout or b"").decode(), "process did not end"
        lines = out.splitlines()
        records.extend(json.loads(line) for line in lines if line.startswith("{"))
        if not lines or lines[-1].startswith("start "):
            seed = int(lines[-1].split()[1]) if lines else first
            records.append({"seed": seed, "codes": [], "place": ended, "seconds": 0.0})
            first = seed + 1
        else:
            break
    return records


def fuzz(first: int, count: int, jobs: int, limit_s: float) -> Iterator[list[dict[str, object]]]:
    """Records of all seeds, batch by batch, in order."""
    bounds = [(low, min(low + BATCH, first + count)) for low in range(first, first + count, BATCH)]
    with ThreadPoolExecutor(jobs) as pool:
        yield from pool.map(lambda bound: batch(*bound, limit_s), bounds)


def main(argv: Sequence[str] | None = None) -> int:
    """Run, show progress on standard error and print the tally."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--limit", type=float, default=30.0, metavar="SECONDS")
    parser.add_argument("--show", type=int, metavar="SEED")
    parser.add_argument("--only", type=int, metavar="SEED")
    parser.add_argument("--worker", metavar="FIRST:LAST", help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    if args.worker:
        first, _, last = args.worker.partition(":")
        worker(int(first), int(last), args.limit)
        return 0
    if args.show is not None:
        for name, text in project(args.show).items():
            print(f"# ---- {name}\n{text}")
        return 0
    if args.only is not None:
        trial = trial_within(args.only, args.limit)
        print(trial.crash or " ".join(trial.codes))
        return int(bool(trial.crash))
    tally = Tally()
    for records in fuzz(args.first, args.count, args.jobs, args.limit):
        for record in records:
            if record["place"] and record["place"] not in tally.crashes:
                print(f"seed {record['seed']}: {record['place']}", file=sys.stderr, flush=True)
            tally.add(record)
        print(
            f"{tally.num_trials}/{args.count}, {len(tally.crashes)} kinds of crash",
            file=sys.stderr,
            flush=True,
        )
    return report(tally)


def report(tally: Tally) -> int:
    """Print the tally; 1 when anything crashed."""
    print(f"{tally.num_trials} projects, {tally.num_read} of them parsed")
    print(f"findings: {dict(sorted(tally.codes.items()))}")
    print(f"slowest: seed {tally.slowest_seed}, {tally.slowest_s:.2f} CPU s")
    for place, seeds in sorted(tally.crashes.items(), key=lambda item: -len(item[1])):
        print(f"CRASH x{len(seeds)}, seeds {seeds[:5]}: {place}")
    return int(bool(tally.crashes))


if __name__ == "__main__":
    sys.exit(main())
