"""The demonstration runs on this machine from beginning to end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.processes


def test_the_demonstration_goes_as_it_says(tmp_path: Path) -> None:
    """The hang is explained with the linter's line, the linter shows it, and the guarded script ends right."""
    pytest.importorskip("torch")
    done = subprocess.run(
        [sys.executable, "-m", "spmdguard", "demo", "--keep", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    first, second, third = done.stdout.split("\n== ")[1:]
    assert "STALL: rank 0 began all_reduce where rank 1 began barrier" in first
    assert "hangs.py:17 SPG102" in first
    assert "error[SPG102]" in second
    assert third.count("stopped after step 5") == 2
    assert sorted(path.name for path in tmp_path.glob("*.py")) == ["guarded.py", "hangs.py"]
