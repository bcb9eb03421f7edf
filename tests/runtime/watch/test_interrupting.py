"""Ctrl-C and SIGTERM under `spmdguard run --nproc 2`: every rank ends, one plain line, the shell's exit code."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType

import pytest

from spmdguard.launching.torchrun import torchrun_command

pytestmark = pytest.mark.processes

TRAIN = """
import os, sys, time
import torch, torch.distributed as dist
import spmdguard

def stand(how, rank):
    os.write(1, f"ready {os.getpid()}\\n".encode())
    while how == "train":
        dist.all_reduce(torch.ones(1))
        time.sleep(0.01)
    if how == "hang" and rank == 0:
        time.sleep(1000)
    if how == "fail":
        raise ValueError("bad shard")
    dist.recv(torch.ones(1), src=1 - rank)

def main():
    dist.init_process_group("gloo")
    stand(sys.argv[1], dist.get_rank())

if "guarded" in sys.argv:
    spmdguard.run(main)
else:
    main()
"""


@contextmanager
def started(
    folder: Path, *arguments: str, text: str = TRAIN
) -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    """The command in a process group of its own, as in a terminal, once both ranks are ready; their process ids."""
    (folder / "train.py").write_text(text)
    process = subprocess.Popen(
        [sys.executable, "-m", "spmdguard", "run", "--nproc", "2", "train.py", *arguments],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    ranks: list[int] = []
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("ready"):
                ranks.append(int(line.split()[1]))
            if len(ranks) == 2:
                break
        if not {"train", "fail"} & set(arguments):
            _wait_until_asleep(ranks)
        yield process, ranks
    finally:
        for pid in (process.pid, *ranks):
            with suppress(OSError):
                os.killpg(pid, signal.SIGKILL)
        process.wait(30)


def _wait_until_asleep(ranks: list[int]) -> None:
    """Python loses a signal that comes between its last look and a system call that blocks: until that returns."""
    looks = 0
    while looks < 5:
        time.sleep(0.1)
        states = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] for pid in ranks]
        looks = looks + 1 if states == ["S"] * len(ranks) else 0


def end_by(number: int, process: subprocess.Popen[str], ranks: list[int]) -> str:
    """Send a signal to the process group, as a terminal does; what was written, once no rank is left."""
    os.killpg(process.pid, number)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 128 + number, said
    assert not [pid for pid in ranks if Path(f"/proc/{pid}").exists()]
    return said


@pytest.mark.parametrize(
    ("how", "number", "line"),
    [
        (("train",), signal.SIGINT, "the run was interrupted (SIGINT); all ranks have ended"),
        (("hang", "guarded"), signal.SIGINT, "the run was interrupted (SIGINT); all ranks have ended"),
        (("train", "guarded"), signal.SIGTERM, "the run was ended by SIGTERM; all ranks have ended"),
    ],
)
def test_a_signal_is_no_failure_of_torchrun(
    tmp_path: Path, how: tuple[str, ...], number: int, line: str
) -> None:
    """One line instead of torchrun's traceback and its log, and the code that shells know."""
    with started(tmp_path, *how) as (process, ranks):
        said = end_by(number, process, ranks)
    assert said.splitlines()[-1] == f"spmdguard: {line}"
    assert "SignalException" not in said
    assert "death signal" not in said
    assert "closing signal" not in said


@pytest.mark.parametrize("how", [("hang",), ("hang", "guarded"), ("train",), ("train", "guarded")])
def test_each_rank_says_once_where_it_was_interrupted(tmp_path: Path, how: tuple[str, ...]) -> None:
    """No rank is called a victim of another that got the same Ctrl-C, and none shows a traceback."""
    with started(tmp_path, *how) as (process, ranks):
        said = end_by(signal.SIGINT, process, ranks)
    lines = sorted(line for line in said.splitlines() if "interrupted (Key" in line)
    assert [line.partition(" was interrupted (KeyboardInterrupt) at train.py:")[0] for line in lines] == [
        "spmdguard: rank 0",
        "spmdguard: rank 1",
    ], said
    assert all(" in stand < train.py:" in line for line in lines)
    assert "Traceback" not in said
    assert "victim" not in said
    assert "failed" not in said


def test_ranks_that_are_blocked_in_a_collective_end_too(tmp_path: Path) -> None:
    """Python raises no KeyboardInterrupt there; the watch ends them, long before torchrun kills them after 30 s."""
    with started(tmp_path, "blocked") as (process, ranks):
        said = end_by(signal.SIGINT, process, ranks)
    lines = [line for line in said.splitlines() if "was interrupted; it had waited" in line]
    assert sorted(line[:17] for line in lines) == ["spmdguard: rank 0", "spmdguard: rank 1"], said
    assert all(" s in recv at train.py:" in line for line in lines)
    assert "forcefully" not in said


LEAVES_IN_ITS_OWN_WAY = """
import os, sys, time
import torch, torch.distributed as dist
dist.init_process_group("gloo")
rank = dist.get_rank()
try:
    os.write(1, f"ready {os.getpid()}\\n".encode())
    time.sleep(1000)
except KeyboardInterrupt:
    if rank == 0:
        time.sleep(4)
    dist.barrier()
    os.write(2, f"saved {rank}\\n".encode())
dist.destroy_process_group()
"""


def test_ranks_that_save_after_an_interrupt_are_left_alone(tmp_path: Path) -> None:
    """A collective that begins after the KeyboardInterrupt is the program's own way to leave."""
    with started(tmp_path, text=LEAVES_IN_ITS_OWN_WAY) as (process, ranks):
        said = end_by(signal.SIGINT, process, ranks)
    assert {"saved 0", "saved 1"} <= set(said.splitlines()), said
    assert "rank 1 was interrupted" not in said


def test_a_real_failure_keeps_torchruns_summary(tmp_path: Path) -> None:
    """What torchrun says of ranks that failed is its own, and so is the code."""
    with started(tmp_path, "fail") as (process, _):
        _, said = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "Root Cause (first observed failure):" in said
    assert "the run was" not in said
    assert "launching/torchrun.py" not in said


@pytest.mark.parametrize("early", [False, True])
def test_an_interrupt_before_torchrun_handles_signals_is_no_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], early: bool
) -> None:
    """While torch is imported, and while the ranks' meeting point is made."""
    fake = ModuleType("torch.distributed.run")
    handlers = {number: signal.getsignal(number) for number in (2, 15, 1, 3)}

    def interrupted(name: object) -> None:
        raise KeyboardInterrupt

    if early:
        vars(fake)["__getattr__"] = interrupted
    else:
        vars(fake)["main"] = interrupted
    monkeypatch.setitem(sys.modules, "torch.distributed.run", fake)
    try:
        assert torchrun_command(["train.py"]) == 130
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    assert capsys.readouterr().err == "spmdguard: the run was interrupted (SIGINT); all ranks have ended\n"
