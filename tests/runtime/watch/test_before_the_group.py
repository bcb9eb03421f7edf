"""From the handshake on every rank is known: one that leaves or stalls before there is a process group is named."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from spmdguard.exitcodes import ExitCode
from spmdguard.watch.diagnosis import diagnose
from spmdguard.watch.standing import Standing

from ..processes import Zygote
from .making import call, waiting
from .plain_ranks import run_ranks

processes = pytest.mark.processes
LEFT, STALLED = int(ExitCode.PEER_FAILED), int(ExitCode.STALLED)
HOSTS = {"SPMDGUARD_HOST": "hostRANK"}
NODES = {**HOSTS, "SPMDGUARD_NODE": "nodeRANK", "LOCAL_WORLD_SIZE": "1", "LOCAL_RANK": "0"}
TRAIN = """
import os, signal, sys, time
import torch.distributed as dist
act = sys.argv[1]
if os.environ["RANK"] == "1":
    if act == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if act == "os_exit":
        os._exit(3)
    if act == "raise":
        raise ValueError("no such shard")
    if act == "sleep":
        time.sleep(3600)
dist.init_process_group("gloo")
print("started")
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text(TRAIN)
    return tmp_path


@processes
@pytest.mark.parametrize("act", ["kill", "os_exit"])
def test_a_rank_that_dies_first_is_named_with_its_process(folder: Path, act: str) -> None:
    """The first thing that a script does is to die: the others, in init_process_group, name process and host."""
    first, second = run_ranks(folder, act, each=HOSTS)
    assert first.code == LEFT, first.err
    expected = f"the cause: rank 1 died without a word (process {second.pid} on host1)"
    assert expected in first.err
    assert re.search(r"it waited [\d.]+ s in init_process_group at train.py:\d+ in <module>", first.err), (
        first.err
    )


@processes
@pytest.mark.parametrize("each", [HOSTS, NODES], ids=["one node", "two nodes"])
def test_a_rank_that_raises_first_frees_the_others(folder: Path, each: dict[str, str]) -> None:
    """An error before there is a group is the cause for ranks that wait in init_process_group."""
    first, second = run_ranks(folder, "raise", each=each)
    assert (first.code, second.code) == (LEFT, 1), first.err + second.err
    assert (
        "the cause: rank 1 failed first: ValueError: no such shard (at train.py:11 in <module>)" in first.err
    )


@processes
def test_a_rank_that_stalls_first_is_named_with_its_line(folder: Path) -> None:
    """Before there is a group a rank may wait as long as for a launch, and not only as the stall limit says."""
    options = ["--stall-limit", "0.5", "--launch-timeout", "6"]
    first, second = run_ranks(folder, "sleep", each=HOSTS, options=options)
    assert (first.code, second.code) == (STALLED, STALLED), first.err + second.err
    assert "STALL: rank 1 did not come: rank 0 waits in init_process_group" in first.err
    assert "at train.py:13 in <module>" in first.err
    waited = re.search(r"rank 0 has waited ([\d.]+) s; the limit is 6 s", first.err)
    assert waited is not None, first.err


@processes
def test_the_handshake_tells_who_a_rank_is(zygote: Zygote) -> None:
    """Of ranks that are asked for, host and process are found in the records of the handshake; of others nothing."""
    environments = [{"WORLD_SIZE": "3", "SPMDGUARD_HOST": host} for host in "abc"]
    ended = zygote.run("launching:find", ranks=3, environments=environments, wanted=[2, 1, 7])
    assert ended.codes == [0, 0, 0], ended.report()
    pids = [json.loads(each.out)["pid"] for each in ended.ranks]
    found = json.loads(ended[0].out)["found"]
    assert found == [[1, "b", pids[1], "missing"], [2, "c", pids[2], "missing"]]


def test_a_rank_of_which_nothing_was_heard_has_a_process() -> None:
    """Where the handshake knew it, a rank without a word of its own is named with process and host."""
    known = Standing(rank=1, host="b", pid=42, state="missing")
    heard = waiting(0, 3, [call(1, "barrier", 7)])
    assert diagnose([heard, known], 2).title == (
        "nothing was heard of rank 1 (process 42 on b); rank 0 waits in barrier"
    )
    assert diagnose([heard], 2).title == "nothing was heard of rank 1; rank 0 waits in barrier"
