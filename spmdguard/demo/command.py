"""``spmdguard demo``: three commands as a user would type them, each on a small script."""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from spmdguard.group.torch_access import lacks_torch

HERE = Path(__file__).parent
STALL_LIMIT_S = 2
_TIMEOUT_S = 90.0


class _Stage(NamedTuple):
    """A command, what is said before it, and how it should end."""

    title: str
    script: str
    command: tuple[str, ...]
    codes: tuple[int, ...]
    shows: str


STAGES = (
    _Stage(
        "1. The script hangs: rank 1 leaves its loop early. `spmdguard run` explains it.",
        "hangs.py",
        ("run", "--nproc", "2", "--stall-limit", str(STALL_LIMIT_S), "hangs.py"),
        (1,),
        "spmdguard: STALL",
    ),
    _Stage(
        "2. The linter shows the line without running it.", "hangs.py", ("lint", "hangs.py"), (1,), "SPG102"
    ),
    _Stage(
        "3. The guarded script: the ranks agree to stop, and it ends right.",
        "guarded.py",
        ("run", "--nproc", "2", "--stall-limit", str(STALL_LIMIT_S), "guarded.py"),
        (0,),
        "stopped after step 5",
    ),
)


def demo_command(arguments: Sequence[str]) -> int:
    """The command; 0 where every stage went as it should."""
    parser = argparse.ArgumentParser(
        prog="spmdguard demo",
        description="Show a hang that is explained, its line found by the linter, and the guarded script. "
        "Starts two processes on this host; needs torch. Takes about half a minute.",
        epilog="exit codes: 0 all went as shown, 1 not, 2 torch is missing",
    )
    parser.add_argument("--keep", metavar="FOLDER", type=Path, help="write the scripts there and keep them")
    options = parser.parse_args(list(arguments))
    if lacks_torch("demo"):
        return 2
    if options.keep is not None:
        options.keep.mkdir(parents=True, exist_ok=True)
        return _show(options.keep)
    with tempfile.TemporaryDirectory() as folder:
        return _show(Path(folder))


def _show(folder: Path) -> int:
    for name in ("hangs.py", "guarded.py"):
        (folder / name).write_text((HERE / f"{name}.txt").read_text(encoding="utf-8"), encoding="utf-8")
    went_well = [_run(stage, folder) for stage in STAGES]
    if all(went_well):
        print(
            "\nAll as it should be. Next: `spmdguard lint` on your own code, `spmdguard run` on your own script."
        )
        return 0
    print("\nThis did not go as it should; the output above says where.", file=sys.stderr)
    return 1


def _run(stage: _Stage, folder: Path) -> bool:
    print(f"\n== {stage.title}\n\n$ spmdguard {' '.join(stage.command)}", flush=True)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "spmdguard", *stage.command],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_TIMEOUT_S,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            check=False,
        )
    except subprocess.TimeoutExpired:
        print(f"did not end within {_TIMEOUT_S:g} s", file=sys.stderr)
        return False
    output = done.stdout.decode(errors="replace")
    as_expected = done.returncode in stage.codes and stage.shows in output
    print(_without_launcher(output) if as_expected and stage.command[0] == "run" else output, flush=True)
    return as_expected


def _without_launcher(output: str) -> str:
    """The output without what torchrun says of it afterwards."""
    kept = []
    for line in output.splitlines():
        if line.startswith("Traceback (most recent call last):"):
            break
        if line and not re.match(r"[WE]\d{4} |\[?W\d{3,4} |\*{5}", line):
            kept.append(line)
    return "\n".join(kept)
