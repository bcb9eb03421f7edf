"""The two DDP examples under real torchrun: guarded, the run ends with its cause; unguarded, it hangs."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from .processes.ports import free_port

pytestmark = pytest.mark.processes
EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"


@dataclass(frozen=True)
class Launched:
    """What torchrun left; ``code`` is None where it had to be ended."""

    code: int | None
    out: str
    err: str


def torchrun(script: str, *argv: str, timeout_s: float, until: str = "", patience_s: float = 0.0) -> Launched:
    """Run an example on two ranks; end it ``patience_s`` after ``until`` was printed by both ranks."""
    pytest.importorskip("torch")
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    command += ["--master-port", str(free_port()), str(EXAMPLES / script), *argv]
    with tempfile.TemporaryDirectory() as folder:
        out, err = Path(folder) / "out", Path(folder) / "err"
        with out.open("w") as out_file, err.open("w") as err_file:
            process = subprocess.Popen(
                command,
                stdout=out_file,
                stderr=err_file,
                start_new_session=True,
                env={**os.environ, "OMP_NUM_THREADS": "1"},
            )
        try:
            deadline_s = time.monotonic() + timeout_s
            while process.poll() is None and time.monotonic() < deadline_s:
                if until and out.read_text().count(until) >= 2:
                    until, deadline_s = "", time.monotonic() + patience_s
                time.sleep(0.05)
            return Launched(process.poll(), out.read_text(), err.read_text())
        finally:
            end_launcher(process)


def end_launcher(process: subprocess.Popen[bytes]) -> None:
    """Let the launcher end its ranks, which are in sessions of their own; kill it where it does not."""
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=60)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(timeout=10)


def steps_of(out: str, rank: int) -> list[int]:
    return [int(step) for step in re.findall(rf"rank {rank}: finished step (\d+)", out)]


def test_the_guarded_example_succeeds(tmp_path: Path) -> None:
    """Without a failure both ranks train to the end, and post_train follows on the main rank."""
    launched = torchrun("ddp_guarded.py", "--output", str(tmp_path), timeout_s=120)
    assert launched.code == 0, launched.err
    assert list(range(1, 17)) == steps_of(launched.out, 0) == steps_of(launched.out, 1)
    assert f"weights are in {tmp_path}" in launched.out
    assert (tmp_path / "weights.pt").exists()


def test_the_guarded_example_ends_with_its_cause(tmp_path: Path) -> None:
    """The upload of rank 0 fails in step 3: both finish it, leave, pass the barrier; rank 0 alone raises."""
    launched = torchrun("ddp_guarded.py", "--fail-upload-at", "3", "--output", str(tmp_path), timeout_s=120)
    assert launched.code == 1, launched.err
    for rank in (0, 1):
        assert steps_of(launched.out, rank) == [1, 2, 3]
        assert f"rank {rank}: passed the final barrier" in launched.out
    assert "weights are in" not in launched.out
    assert launched.err.count("spmdguard: rank 0 failed\nTraceback (most recent call last):") == 1
    assert 'in upload_metrics\n    raise OSError(f"metrics server refused step {step}")' in launched.err
    failures = launched.err.partition("FAILED")[2]
    assert "<NO_OTHER_FAILURES>" in failures
    assert re.search(r"rank +: 0 .*\n +exitcode +: 1 ", failures)
    assert "OSError: metrics server refused step 3" in failures


def test_the_unguarded_example_hangs(tmp_path: Path) -> None:
    """The same script without spmdguard: after step 3 nothing happens any more."""
    launched = torchrun(
        "ddp_unguarded.py",
        "--fail-upload-at",
        "3",
        "--output",
        str(tmp_path),
        timeout_s=120,
        until="finished step 3",
        patience_s=10,
    )
    assert launched.code is None, launched.err
    assert [1, 2, 3] == steps_of(launched.out, 0) == steps_of(launched.out, 1)
