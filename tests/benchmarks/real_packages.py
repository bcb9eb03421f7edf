"""Lint whole packages as installed from the package index: crashes, cost, findings by code.

python -m tests.benchmarks.real_packages FOLDER... [--dump findings.json] [--timeout 600]
python -m tests.benchmarks.real_packages --download accelerate trl --dump findings.json

Each package is linted twice, in processes of their own: as a user would, and with ``--preview``. The dump
holds every finding with the source around it, so that people can read and label it (true, arguable, false).
Exits 1 when a run crashed or timed out.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.benchmarks import measure

BEFORE, AFTER = 12, 6


@dataclass(frozen=True)
class Outcome:
    """One run of the linter on one package; ``crash`` says how it failed, if it did."""

    cost: measure.Run
    findings: tuple[dict[str, Any], ...]
    crash: str


def main(argv: Sequence[str] | None = None) -> int:
    """Lint, print the table, write the dump."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    measure.add_package_arguments(parser)
    parser.add_argument("--dump", type=Path, help="write every finding with its source to this JSON file")
    parser.add_argument("--timeout", type=float, default=600.0, metavar="SECONDS")
    args = parser.parse_args(argv)
    rows: list[Sequence[object]] = []
    dump: list[dict[str, Any]] = []
    crashes: list[str] = []
    with ExitStack() as stack:
        for folder in measure.packages(args, stack):
            row, found, failed = one_package(folder.resolve(), args.timeout)
            rows.append(row)
            dump.extend(found)
            crashes.extend(failed)
            print(measure.table(HEADER, [row]).splitlines()[-1], file=sys.stderr, flush=True)
    print(measure.table(HEADER, rows))
    for crash in crashes:
        print(f"\nCRASH {crash}")
    if args.dump:
        args.dump.write_text(json.dumps(dump, indent=1) + "\n", encoding="utf-8")
    return 1 if crashes else 0


HEADER = (
    "package",
    "files",
    "lines",
    "CPU s",
    "peak MB",
    "default",
    "per 10k lines",
    "preview",
    "unread",
    "crashes",
)


def one_package(folder: Path, timeout_s: float) -> tuple[Sequence[object], list[dict[str, Any]], list[str]]:
    """The row of the table, the findings for the dump, and the crashes."""
    files = measure.python_files(folder)
    lines = sum(path.read_bytes().count(b"\n") for path in files)
    default = lint(folder, timeout_s, [])
    preview = lint(folder, timeout_s, ["--preview"])
    seen = {_key(finding) for finding in default.findings}
    dump = [with_source(finding, folder, "default") for finding in default.findings]
    dump += [with_source(f, folder, "preview") for f in preview.findings if _key(f) not in seen]
    real = [finding for finding in default.findings if not finding["code"].startswith("SPG9")]
    crashes = [f"{folder.name}: {outcome.crash}" for outcome in (default, preview) if outcome.crash]
    unread = by_code([f for f in default.findings if f["code"] in ("SPG903", "SPG904")])
    row = (
        folder.name,
        len(files),
        lines,
        default.cost.cpu_s,
        round(default.cost.peak_mb),
        by_code(real),
        len(real) / max(lines, 1) * 10_000,
        by_code([f for f in preview.findings if _key(f) not in seen]),
        unread,
        len(crashes),
    )
    return row, dump, crashes


def lint(folder: Path, timeout_s: float, options: Sequence[str]) -> Outcome:
    """One run in a process of its own, from the package's own folder."""
    command = [
        *measure.linter(),
        "lint",
        "--isolated",
        "--no-cache",
        "--quiet",
        "--output-format",
        "json",
        *options,
        ".",
    ]
    cost = measure.run(command, timeout_s=timeout_s, cwd=folder)
    if cost.exit_code in (0, 1) and "Traceback" not in cost.err:
        return Outcome(cost, tuple(json.loads(cost.out)), "")
    reason = "timed out" if cost.exit_code == -9 else f"exit code {cost.exit_code}"
    return Outcome(cost, (), f"{reason}\n{cost.err[-3000:]}")


def with_source(finding: dict[str, Any], folder: Path, reported: str) -> dict[str, Any]:
    """A finding with the lines around it, and room for a reader's verdict."""
    row = finding["location"]["row"]
    try:
        lines = (folder / finding["filename"]).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    first = max(row - BEFORE, 1)
    excerpt = [
        f"{number:5d}  {lines[number - 1]}" for number in range(first, min(row + AFTER, len(lines)) + 1)
    ]
    label = {"package": folder.name, "reported": reported, "verdict": "", "reason": ""}
    return {**label, **finding, "source": excerpt}


def by_code(findings: Sequence[dict[str, Any]]) -> str:
    """How many of each code, as ``102x3 301x1``."""
    counts = Counter(finding["code"].removeprefix("SPG") for finding in findings)
    return " ".join(f"{code}x{count}" for code, count in sorted(counts.items())) or "0"


def _key(finding: dict[str, Any]) -> str:
    return json.dumps([finding[name] for name in ("code", "filename", "location", "message")])


if __name__ == "__main__":
    sys.exit(main())
