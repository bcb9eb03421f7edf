"""The runtime without torch, and without a process group: the same program, alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_a_whole_life_without_torch() -> None:
    """Where torch cannot be imported, a guarded program runs, stops, cleans up and raises the same."""
    program = Path(__file__).with_name("without_torch.py")
    done = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, timeout=60, check=False
    )
    expected = [
        "first",
        "left in step 3 rank 0: deferred OSError: upload",
        "raised upload",
        "main True False",
    ]
    assert (0, expected) == (done.returncode, done.stdout.splitlines()), done.stderr
    assert "spmdguard: rank 0 failed" in done.stderr
