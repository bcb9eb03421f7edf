"""A process too many, under ``spmdguard run``: it is refused, and the run says who it was."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from ..processes.ports import free_port
from .plain_ranks import run_ranks, start_rank

pytestmark = pytest.mark.processes
TRAIN = """
import os, pathlib, time
import torch.distributed as dist
dist.init_process_group("gloo")
pathlib.Path(f"started{os.environ['RANK']}").touch()
while not pathlib.Path("enough").exists():
    time.sleep(0.05)
dist.barrier()
"""
HOSTS = {"SPMDGUARD_HOST": "hostRANK"}
PATIENCE_S = 120.0


def wait_until_said(text: str, err: Path) -> None:
    """Until a process has written ``text``."""
    deadline_s = time.monotonic() + PATIENCE_S
    while text not in err.read_text():
        assert time.monotonic() < deadline_s, err.read_text()
        time.sleep(0.05)


def test_a_process_that_comes_late_is_named_by_rank_0(tmp_path: Path) -> None:
    """While the run goes on rank 0 names host and process of one that was refused, once; the run ends well."""
    (tmp_path / "train.py").write_text(TRAIN)
    port = free_port()
    errs = [tmp_path / f"err{rank}" for rank in range(2)]
    running = [start_rank(tmp_path, rank, 2, port, each=HOSTS, err=errs[rank]) for rank in range(2)]
    try:
        deadline_s = time.monotonic() + PATIENCE_S
        while not all((tmp_path / f"started{rank}").exists() for rank in range(2)):
            assert time.monotonic() < deadline_s, [err.read_text() for err in errs]
            time.sleep(0.05)
        late = start_rank(tmp_path, 1, 2, port, each={"SPMDGUARD_HOST": "c"})
        said = late.communicate(timeout=PATIENCE_S)[1]
        assert late.returncode == 1, said
        assert f"rank 1 (process {late.pid} on host c) came after all 2 ranks of the job had met" in said
        line = (
            f"spmdguard: rank 1 (process {late.pid} on host c) came after all ranks had met and was refused\n"
        )
        wait_until_said(line, errs[0])
        (tmp_path / "enough").touch()
        codes = [process.wait(timeout=PATIENCE_S) for process in running]
    finally:
        for process in running:
            process.kill()
            process.wait(timeout=10)
    assert codes == [0, 0], [err.read_text() for err in errs]
    assert [err.read_text().count(line) for err in errs] == [1, 0]


def test_a_process_too_many_is_named_at_the_start(tmp_path: Path) -> None:
    """Three processes for two ranks: every one of them names the two that claim one rank, and none starts."""
    (tmp_path / "train.py").write_text(TRAIN)
    ended = run_ranks(tmp_path, num=3, each={"WORLD_SIZE": "2", "SPMDGUARD_HOST": "hostRANK"})
    assert [each.code for each in ended] == [1, 1, 1], [each.err for each in ended]
    for each in ended:
        assert f"process {ended[2].pid} on host host2" in each.err, each.err
        assert "RANK is 2 but WORLD_SIZE is 2" in each.err, each.err
    assert not list(tmp_path.glob("started*"))
