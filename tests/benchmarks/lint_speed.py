"""CPU time of a cold ``spmdguard lint`` against parsing alone, against fixit and against torchfix.

python -m tests.benchmarks.lint_speed FOLDER... [--rounds 5] [--fixit BIN] [--torchfix BIN]
python -m tests.benchmarks.lint_speed --download accelerate pytorch-lightning --venvs FOLDER

Each round measures, per package, the whole process of the linter and, in another fresh process, the CPU time
of ``libcst.parse_module`` over the same files (the loop only: no import, no reading). The order alternates.
Reported are the medians of the paired ratios. *All files* divides by the time for every Python file of the
package; *collective files* by the time for those that name a collective of ``torch.distributed`` or of a
framework followed by an opening parenthesis (``COLLECTIVE_CALL`` below).
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import re
import subprocess
import sys
import tempfile
import venv
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks import measure

TIMEOUT_S = 600.0
COLLECTIVE_CALL = re.compile(
    rb"\b(all_reduce|all_gather\w*|all_to_all\w*|reduce_scatter\w*|broadcast(_object_list)?|barrier|"
    rb"monitored_barrier|gather_object|scatter_object_list|new_group|init_process_group|destroy_process_group|"
    rb"wait_for_everyone|gather_for_metrics|backward|clip_grad_norm_)\s*\("
)
# Runs in a fresh interpreter: the CPU time of parsing the files that a JSON list names.
PARSE_LOOP = """
import json, sys, time
import libcst
names = json.load(open(sys.argv[1]))
contents = [open(name, "rb").read() for name in names]
libcst.parse_module("x = 1")
started = time.process_time()
for content in contents:
    try:
        libcst.parse_module(content)
    except libcst.ParserSyntaxError:
        pass
print(time.process_time() - started)
"""


@dataclass(frozen=True)
class Sample:
    """One round on one package, in CPU seconds."""

    lint_s: float
    warm_s: float
    parse_s: float
    parse_collective_s: float
    fixit_s: float | None
    torchfix_s: float | None


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    measure.add_package_arguments(parser)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--fixit", type=Path, help="the fixit command of its own environment")
    parser.add_argument("--torchfix", type=Path, help="the torchfix command of its own environment")
    parser.add_argument("--venvs", type=Path, help="make environments for fixit and torchfix in this folder")
    parser.add_argument("--without-linter", action="store_true", help="measure the others only")
    args = parser.parse_args(argv)
    if args.venvs:
        args.fixit = args.fixit or make_tool("fixit", args.venvs)
        args.torchfix = args.torchfix or make_tool("torchfix", args.venvs)
    with ExitStack() as stack:
        folders = measure.packages(args, stack)
        rounds = [measure_package(folder, args) for folder in folders]
    if len(rounds) > 1:
        print("\n## all packages together")
        print_table([total(parts) for parts in zip(*rounds, strict=True)])
    return 0


def make_tool(name: str, folder: Path) -> Path:
    """Install a peer into an environment of its own; returns its command."""
    home = folder / name
    command = home / "bin" / name
    if not command.exists():
        venv.create(home, with_pip=True)
        subprocess.run([home / "bin" / "pip", "install", "--quiet", name], check=True, timeout=600)
    return command


def measure_package(folder: Path, args: argparse.Namespace) -> list[Sample]:
    """Measure one package in rounds and print its medians."""
    files = measure.python_files(folder)
    collective = [path for path in files if COLLECTIVE_CALL.search(path.read_bytes())]
    lines = sum(path.read_bytes().count(b"\n") for path in files)
    print(f"\n## {folder.name}: {len(files)} files, {lines} lines, {len(collective)} files name a collective")
    samples = [one_round(folder, files, collective, args, number) for number in range(args.rounds)]
    print_table(samples)
    return samples


def total(parts: Sequence[Sample]) -> Sample:
    """The sum of one round over several packages."""
    sums = {}
    for field in dataclasses.fields(Sample):
        values = [getattr(part, field.name) for part in parts]
        sums[field.name] = None if None in values else sum(values)
    return Sample(**sums)


def print_table(samples: Sequence[Sample]) -> None:
    """Medians over the rounds, and of the ratios paired within a round."""
    rows: list[Sequence[object]] = []
    for label, name in LABELS:
        values = [getattr(sample, name) for sample in samples]
        if None in values or not any(values):
            continue
        ratios = [sample.lint_s / value for sample, value in zip(samples, values, strict=True)]
        ratio = measure.median(ratios) if any(ratios) else "-"
        rows.append((label, measure.median(values), min(values), max(values), ratio))
    print(measure.table(("CPU seconds of", "median", "least", "most", "linter / this"), rows), flush=True)


LABELS = (
    ("spmdguard lint", "lint_s"),
    ("spmdguard lint, again", "warm_s"),
    ("libcst.parse_module, all files", "parse_s"),
    ("libcst.parse_module, collective files", "parse_collective_s"),
    ("fixit lint", "fixit_s"),
    ("torchfix", "torchfix_s"),
)


def one_round(
    folder: Path, files: Sequence[Path], collective: Sequence[Path], args: argparse.Namespace, number: int
) -> Sample:
    """Every command once; odd rounds in the opposite order."""
    warm: list[float] = [0.0]
    commands = {
        "lint_s": lambda: 0.0 if args.without_linter else lint(folder, warm),
        "parse_s": lambda: parse(files),
        "parse_collective_s": lambda: parse(collective),
        "fixit_s": lambda: tool([args.fixit, "lint", folder]) if args.fixit else None,
        "torchfix_s": lambda: tool([args.torchfix, "--select", "ALL", folder]) if args.torchfix else None,
    }
    order = list(commands) if number % 2 == 0 else list(reversed(commands))
    measured = {name: commands[name]() for name in order}
    return Sample(**measured, warm_s=warm[-1])


def lint(folder: Path, warm: list[float]) -> float:
    """CPU seconds of the whole linter, started in an empty folder so that nothing is left from before.

    ``warm`` learns those of a second run there, which finds the result of the first.
    """
    with tempfile.TemporaryDirectory() as scratch:
        command = [*measure.linter(), "lint", "--isolated", "--output-format", "concise", folder.resolve()]
        outcomes = [measure.run(command, timeout_s=TIMEOUT_S, cwd=scratch) for _ in range(2)]
    for outcome in outcomes:
        if outcome.exit_code not in (0, 1):
            raise SystemExit(f"spmdguard lint ended with {outcome.exit_code}:\n{outcome.err}")
    if outcomes[0].out != outcomes[1].out:
        raise SystemExit("spmdguard lint found something else the second time")
    warm.append(outcomes[1].cpu_s)
    return outcomes[0].cpu_s


def parse(files: Sequence[Path]) -> float:
    """CPU seconds of parsing the files with libcst in a fresh interpreter."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as names:
        json.dump([str(path.resolve()) for path in files], names)
        names.flush()
        outcome = measure.run([sys.executable, "-c", PARSE_LOOP, names.name], timeout_s=TIMEOUT_S)
    if outcome.exit_code != 0:
        raise SystemExit(outcome.err)
    return float(outcome.out)


def tool(command: Sequence[str | Path]) -> float:
    """CPU seconds of another linter; finding something is no failure."""
    outcome = measure.run(command, timeout_s=TIMEOUT_S)
    if outcome.exit_code < 0 or "Traceback" in outcome.err:
        raise SystemExit(f"{command[0]} ended with {outcome.exit_code}:\n{outcome.err[-2000:]}")
    return outcome.cpu_s


if __name__ == "__main__":
    sys.exit(main())
