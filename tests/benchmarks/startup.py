"""The whole process of linting one script of 300 lines against ``python -c "import libcst"``.

python -m tests.benchmarks.startup [--rounds 20] [--lines 300] [SCRIPT]

Without SCRIPT the script is put together from the case collection: training code with rank branches and
collectives, so that nothing is skipped for want of a marker. Rounds are paired, their order alternates.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.benchmarks import measure

CASES = Path(__file__).resolve().parent.parent / "corpus" / "cases"
TIMEOUT_S = 60.0


def script(num_lines: int) -> str:
    """Whole case files, one after the other, until the length is reached; cut at the end of a file's line."""
    lines: list[str] = []
    for path in sorted(CASES.rglob("bad.py")):
        text = path.read_text(encoding="utf-8")
        if "from __future__" not in text:
            lines.extend(text.splitlines())
        if len(lines) >= num_lines:
            break
    while lines:
        text = "\n".join(lines[:num_lines]) + "\n"
        try:
            compile(text, "script.py", "exec")
            return text
        except SyntaxError:
            num_lines -= 1
    raise SystemExit(f"no cases below {CASES}")


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("script", nargs="?", type=Path)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--lines", type=int, default=300)
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch, "train.py")
        path.write_text(args.script.read_text(encoding="utf-8") if args.script else script(args.lines))
        commands = {
            "spmdguard lint": [*measure.linter(), "lint", "--isolated", "--no-cache", path],
            "import libcst": [sys.executable, "-c", "import libcst"],
            "python -c pass": [sys.executable, "-c", "pass"],
        }
        print(f"{len(path.read_text().splitlines())} lines, {args.rounds} rounds")
        one_round(commands, 0, scratch)  # leaves compiled bytecode
        runs = [one_round(commands, number, scratch) for number in range(args.rounds)]
    base = "import libcst"
    rows = []
    for name in commands:
        cpu = measure.median(r[name].cpu_s for r in runs)
        wall = measure.median(r[name].wall_s for r in runs)
        ratio = measure.median(r[name].cpu_s / r[base].cpu_s for r in runs)
        wall_ratio = measure.median(r[name].wall_s / r[base].wall_s for r in runs)
        rows.append((name, cpu * 1000, wall * 1000, ratio, wall_ratio))
    print(
        measure.table(("process", "CPU ms", "wall ms", "CPU / import libcst", "wall / import libcst"), rows)
    )
    return 0


def one_round(commands: dict[str, list[str | Path]], number: int, cwd: str) -> dict[str, measure.Run]:
    """Every command once; odd rounds in the opposite order."""
    order = list(commands) if number % 2 == 0 else list(reversed(commands))
    runs = {name: measure.run(commands[name], timeout_s=TIMEOUT_S, cwd=cwd) for name in order}
    for name, outcome in runs.items():
        if outcome.exit_code not in (0, 1) or "Traceback" in outcome.err:
            raise SystemExit(f"{name} ended with {outcome.exit_code}:\n{outcome.err}")
    return runs


if __name__ == "__main__":
    sys.exit(main())
