"""The oracle against the real library: programs it calls matching run to the same end on two gloo processes."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lint.generated.oracle import FILENAME, Setting, run_setting
from tests.lint.generated.programs import from_seed

NUM_PROGRAMS = 20
UNREAL = ("torch.rand", "time.", "exists(")  # whose stand-ins make ranks disagree on purpose
WORKER = """
import json, os, sys
import torch.distributed as dist
jobs, out = json.load(open(sys.argv[1])), sys.argv[2]
sys.argv = ["train.py"]
endings = []
for port, source in jobs:
    os.environ["MASTER_PORT"] = str(port)
    try:
        exec(compile(source, "program", "exec"), {"__name__": "__main__", "print": lambda *a: None})
        endings.append("ends")
    except SystemExit:
        endings.append("exits")
    except Exception as error:
        endings.append(f"raises {type(error).__name__}")
    if dist.is_initialized():
        dist.destroy_process_group()
    with open(out, "w") as file:
        json.dump(endings, file)
os._exit(0)
"""


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.long
@pytest.mark.processes
@pytest.mark.timeout(600)
def test_matching_programs_end_the_same_way_on_real_processes(tmp_path: Path) -> None:
    """What the oracle says of each rank's end is what the rank does under gloo."""
    jobs: list[tuple[int, str]] = []
    expected: list[tuple[str, ...]] = []
    index = 0
    while len(jobs) < NUM_PROGRAMS:
        source, index = from_seed(11, index), index + 1
        if any(word in source for word in UNREAL):
            continue
        outcome = run_setting(compile(source, FILENAME, "exec"), Setting(2))
        if outcome.verdict == "match":
            jobs.append((_free_port(), source))
            expected.append(outcome.endings)
    (tmp_path / "jobs.json").write_text(json.dumps(jobs))
    ranks = [_start(tmp_path, rank) for rank in (0, 1)]
    try:
        for process in ranks:
            process.wait(timeout=500)
    finally:
        for process in ranks:
            process.kill()
            process.wait(timeout=20)
    real = [json.loads((tmp_path / f"{rank}.json").read_text()) for rank in (0, 1)]
    assert list(zip(*real, strict=True)) == expected


def _start(folder: Path, rank: int) -> subprocess.Popen[bytes]:
    env = {**os.environ, "RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MODE": "fast"}
    command = [sys.executable, "-c", WORKER, str(folder / "jobs.json"), str(folder / f"{rank}.json")]
    return subprocess.Popen(command, env=env, stderr=subprocess.DEVNULL)
