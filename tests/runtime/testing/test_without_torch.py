"""SimulatedWorld where torch is not installed: this package's own calls are simulated."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys

class Forbidden:
    def find_spec(self, name, *_):
        if name.split(".")[0] in ("torch", "numpy"):
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Forbidden())

import spmdguard
from spmdguard.testing import CollectiveMismatch, SimulatedWorld, fault_point

def train():
    for step in range(5):
        spmdguard.barrier()
        spmdguard.try_or_defer(fault_point, "upload")
        if spmdguard.sync_should_stop():
            return step

world = SimulatedWorld(3, seed=1)
world.fail(2, at="upload", nth=2, error=OSError("disk full"))
assert world.run(train) == [1, 1, 1]
assert [type(each.error).__name__ for each in world.outcomes(spmdguard.run, train)] == [
    "OtherRanksFailed", "NoneType", "OSError"]
try:
    SimulatedWorld(2).run(lambda: spmdguard.is_main_process() and spmdguard.barrier())
except CollectiveMismatch as exc:
    assert exc.missing == (1,), exc
else:
    raise AssertionError("no mismatch")
try:
    SimulatedWorld(2, torch=True)
except ValueError as exc:
    assert "torch is not installed" in str(exc)
assert "torch" not in sys.modules
print("fine")
"""


def test_this_package_alone_is_simulated() -> None:
    """Agreement, deferral, ``run``, faults and mismatches work in a process that cannot import torch."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (0, "fine\n"), done.stderr


def test_importing_the_kit_does_not_import_torch() -> None:
    """``import spmdguard.testing`` and the plugin are cheap for every pytest run that does not use them."""
    program = (
        "import sys, spmdguard.testing.plugin; print('torch' in sys.modules, 'hypothesis' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout == "False False\n", done.stderr
