"""Two hosts as network namespaces with names of their own, joined by one cable: reports group by host."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.benchmarks.launch_faults.running import WORKER, open_process, wait_for_all

from ..processes.ports import free_port

pytestmark = [
    pytest.mark.processes,
    pytest.mark.long,
    pytest.mark.skipif(
        not hasattr(os, "geteuid") or os.geteuid() != 0 or shutil.which("ip") is None,
        reason="namespaces need root and the command ip",
    ),
]
HOSTS = ("a", "b")


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, timeout=30)


@pytest.fixture
def namespaces() -> Iterator[dict[str, str]]:
    """A namespace for each host, with an interface ``v<host>`` at 10.77.0.<1, 2>."""
    names = {host: f"spmdguard-{os.getpid()}-{host}" for host in HOSTS}
    try:
        for name in names.values():
            ip("netns", "add", name)
        ip(
            "link",
            "add",
            "va",
            "netns",
            names["a"],
            "type",
            "veth",
            "peer",
            "name",
            "vb",
            "netns",
            names["b"],
        )
        for number, host in enumerate(HOSTS):
            inside = ["-n", names[host]]
            ip(*inside, "addr", "add", f"10.77.0.{number + 1}/24", "dev", f"v{host}")
            ip(*inside, "link", "set", f"v{host}", "up")
            ip(*inside, "link", "set", "lo", "up")
        yield names
    finally:
        for name in names.values():
            with contextlib.suppress(subprocess.CalledProcessError):
                ip("netns", "del", name)


def launch(
    namespaces: dict[str, str], folder: Path, ranks: dict[int, str], size: int, *arguments: str
) -> None:
    """Start ranks on their hosts, each as Python with these arguments, and wait until all have ended."""
    port = str(free_port())
    started = []
    for rank, host in ranks.items():
        environment = {
            **os.environ,
            "PYTHONPATH": str(Path(__file__).resolve().parents[3]),
            "OMP_NUM_THREADS": "1",
            "FAULT_FOLDER": str(folder),
            "RANK": str(rank),
            "WORLD_SIZE": str(size),
            "LOCAL_RANK": "0",
            "MASTER_ADDR": "10.77.0.1",
            "MASTER_PORT": port,
            "GLOO_SOCKET_IFNAME": f"v{host}",
        }
        script = f'hostname node-{host}; exec "$@"'
        command = ["ip", "netns", "exec", namespaces[host], "unshare", "--uts", "sh", "-c", script, "sh"]
        started.append(open_process([*command, sys.executable, *arguments], environment))
    try:
        wait_for_all(started, time.monotonic() + 120)
        assert all(process.poll() is not None for process in started)
    finally:
        for process in started:
            process.kill()
            process.wait(30)


def meet(
    namespaces: dict[str, str], folder: Path, ranks: dict[int, str], size: int, deadline_s: float
) -> dict[str, dict[str, Any]]:
    """Let ranks shake hands, and give what each was told."""
    launch(namespaces, folder, ranks, size, str(WORKER), "guarded", str(deadline_s))
    reports = [json.loads(path.read_text()) for path in folder.glob("*.json")]
    return {each["rank"]: each for each in reports}


def test_ranks_of_two_hosts_meet(namespaces: dict[str, str], tmp_path: Path) -> None:
    """Ranks of both hosts start their group over the cable between them."""
    told = meet(namespaces, tmp_path, {0: "a", 1: "b"}, 2, 60)
    assert {rank: each["text"] for rank, each in told.items()} == {"0": "started", "1": "started"}


def test_missing_ranks_are_reported_by_host(namespaces: dict[str, str], tmp_path: Path) -> None:
    """Both hosts hear at the deadline who came from which host, and who did not."""
    told = meet(namespaces, tmp_path, {0: "a", 1: "b", 2: "b"}, 4, 8)
    assert set(told) == {"0", "1", "2"}
    for each in told.values():
        assert each["text"].startswith("rank 3 of 4 did not come")
        for rank, host in (("0", "a"), ("1", "b"), ("2", "b")):
            assert f"rank {rank} (process {told[rank]['pid']} on host node-{host})" in each["text"]


STALLS = """
import time, torch, torch.distributed as dist
dist.init_process_group("gloo")
dist.all_reduce(torch.ones(1))
if dist.get_rank() == 2:
    time.sleep(600)
dist.all_reduce(torch.ones(1))
"""


def test_a_stall_is_reported_by_host(namespaces: dict[str, str], tmp_path: Path) -> None:
    """The watch of two hosts that share neither memory nor loopback makes one report, with every rank's host."""
    (tmp_path / "train.py").write_text(STALLS)
    reports = tmp_path / "reports"
    options = ["--stall-limit", "3", "--report-dir", str(reports)]
    script = str(tmp_path / "train.py")
    launch(namespaces, tmp_path, {0: "a", 1: "b", 2: "b"}, 3, "-m", "spmdguard", "run", *options, script)
    (found,) = [json.loads(path.read_text()) for path in reports.glob("stall-*[0-9].json")]
    assert (found["kind"], found["suspects"]) == ("elsewhere", [2])
    assert {each["rank"]: each["host"] for each in found["ranks"]} == {
        0: "node-a",
        1: "node-b",
        2: "node-b",
    }
    (text,) = [path.read_text() for path in reports.glob("stall-*.txt")]
    assert "rank 0 (host node-a), rank 1 (host node-b): wait in all_reduce" in text
