"""The handshake between real processes: each wrong launch is named on every rank that came."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ..processes import Ranks, Zygote
from ..processes.ports import free_port

pytestmark = pytest.mark.processes
LONG_S = 120.0  # no fault that is named at once waits for it
BOUND_S = 30.0


def rank(number: int, size: int = 2, **more: Any) -> dict[str, Any]:
    """One process; even ranks are on host a, odd ones on host b."""
    return {
        "RANK": str(number),
        "LOCAL_RANK": "0",
        "WORLD_SIZE": str(size),
        "SPMDGUARD_HOST": "ab"[number % 2],
        **more,
    }


def answers(ended: Ranks) -> list[dict[str, Any]]:
    assert ended.hung == [], ended.report()
    return [json.loads(each.out.splitlines()[-1]) for each in ended.ranks]


def meet(zygote: Zygote, *environments: dict[str, Any], timeout: float = LONG_S, **more: Any) -> list[dict]:
    ended = zygote.run(
        "launching:meet",
        ranks=len(environments),
        timeout_s=BOUND_S,
        environments=list(environments),
        timeout=timeout,
        **more,
    )
    found = answers(ended)
    assert [int(bool(each["codes"])) for each in found] == [each.code for each in ended.ranks]
    return found


@pytest.mark.parametrize("agent_store", [True, False])
def test_a_right_launch_is_let_through(zygote: Zygote, agent_store: bool) -> None:
    """All ranks meet, repeatedly, whether torchrun's agent or rank 0 holds the store; a difference is noted."""
    found = meet(
        zygote,
        rank(0, 3, NCCL_DEBUG="INFO"),
        rank(1, 3),
        rank(2, 3),
        times=3,
        agent_store=agent_store,
    )
    assert [(each["codes"], each["size"]) for each in found] == [([], 3)] * 3
    note = f"NCCL_DEBUG differs: rank 0 (process {found[0]['pid']} on host a): INFO | "
    assert found[0]["notes"][0].startswith(note)


FAULTS = {
    "duplicate-rank-0": (
        [rank(0, 3), rank(0, 3), rank(1, 3)],
        "duplicate-rank",
        "rank 0 is claimed by 2 processes",
        (0, 1),
    ),
    "duplicate-rank-1": (
        [rank(0, 3), rank(1, 3), rank(1, 3)],
        "duplicate-rank",
        "rank 1 is claimed by 2 processes",
        (1, 2),
    ),
    "world-sizes": ([rank(0), rank(1, 3)], "world-size-differs", "ranks disagree on WORLD_SIZE", (0, 1)),
    # the wrong one comes before all others have met; later, it alone is told (see below)
    "rank-too-large": (
        [rank(0), rank(1, after=2), rank(2)],
        "rank-too-large",
        "RANK is 2 but WORLD_SIZE is 2",
        (2,),
    ),
    "no-number": ([rank(0), rank(1, RANK="one")], "bad-variable", "RANK is 'one', expected a number", (1,)),
    "local-rank": (
        [
            rank(0, SPMDGUARD_NUM_DEVICES="1"),
            rank(1, LOCAL_RANK="1", SPMDGUARD_NUM_DEVICES="1"),
        ],
        "local-rank-beyond-devices",
        "LOCAL_RANK is 1 but 1 device can be seen",
        (1,),
    ),
    "two-launchers": (
        [rank(0, SLURM_PROCID="0", SLURM_STEP_ID="0"), rank(1, SLURM_PROCID="0", SLURM_STEP_ID="0")],
        "two-launchers",
        "RANK is 1 but SLURM_PROCID is 0",
        (1,),
    ),
    "torchrun-in-srun": (
        [
            rank(
                i,
                TORCHELASTIC_RUN_ID="x",
                GROUP_WORLD_SIZE="1",
                SLURM_PROCID="0",
                SLURM_STEP_ID="0",
                SLURM_NTASKS="2",
            )
            for i in range(2)
        ],
        "two-launchers",
        "srun started 2 tasks and torchrun runs 1 of its agents",
        (0, 1),
    ),
    "jobs": (
        [rank(0, TORCHELASTIC_RUN_ID="x"), rank(1, TORCHELASTIC_RUN_ID="y")],
        "jobs-differ",
        "processes of different jobs met on one port",
        (0, 1),
    ),
    "arguments": (
        [rank(0, argv=["--lr", "1"]), rank(1, argv=["--lr", "2"])],
        "arguments-differ",
        "ranks were given different arguments: --lr",
        (0, 1),
    ),
    "variables": (
        [rank(0), rank(1, TORCH_DISTRIBUTED_DEBUG="DETAIL")],
        "environment-differs",
        "ranks disagree on TORCH_DISTRIBUTED_DEBUG",
        (0, 1),
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_wrong_launch_is_named_at_once_on_every_rank(zygote: Zygote, name: str) -> None:
    """Each process is told the same fault, with host and process of those concerned, before any deadline."""
    environments, code, title, concerned = FAULTS[name]
    found = meet(zygote, *environments, agent_store=name == "two-launchers")
    for each in found:
        assert (code, title) == (each["codes"][0], each["text"].splitlines()[0][: len(title)])
        for index in concerned:
            host = environments[index]["SPMDGUARD_HOST"]
            assert f"process {found[index]['pid']} on host {host}" in each["text"], each["text"]


def test_a_launch_that_happens_twice_is_named(zygote: Zygote) -> None:
    """Two launches on one port that overlap: all six processes learn it, whoever comes first."""
    pairs = [rank(number, 3, after=4 if number == 2 else None) for number in (0, 1, 2) for _ in range(2)]
    found = meet(zygote, *pairs, agent_store=False)
    codes = [each["codes"][:1] for each in found]
    assert all(each in (["launched-twice"], ["duplicate-rank"]) for each in codes), found


def test_a_second_launch_after_all_have_met_is_refused(zygote: Zygote) -> None:
    """Two launches on one port, one after the other: the first runs, each process of the second is told."""
    stays = [rank(number, stay_s=4) for number in (0, 1)]
    late = [rank(number, after="verdict") for number in (0, 1)]
    found = meet(zygote, *stays, *late, agent_store=False)
    assert [each["codes"] for each in found] == [[], [], ["surplus-process"], ["surplus-process"]]


def test_a_process_that_comes_late_is_refused(zygote: Zygote) -> None:
    """Who comes after all ranks have met is told so with the process that runs; the job goes on."""
    late = rank(1, after="verdict")
    found = meet(zygote, rank(0, stay_s=4), rank(1, stay_s=4), late, agent_store=False, times=1)
    assert [each["codes"] for each in found] == [[], [], ["surplus-process"]]
    text = found[2]["text"]
    assert text.startswith(
        f"rank 1 (process {found[2]['pid']} on host b) came after all 2 ranks of the job had met"
    )
    assert f"rank 0 (process {found[0]['pid']} on host a) holds its store" in text


@pytest.mark.parametrize("agent_store", [True, False])
def test_missing_ranks_are_named_at_the_deadline(zygote: Zygote, agent_store: bool) -> None:
    """At the deadline every rank that came is told who is missing and where it was expected."""
    environments = [
        rank(0, 6, LOCAL_RANK="0", LOCAL_WORLD_SIZE="2", SPMDGUARD_HOST="a"),
        rank(1, 6, LOCAL_RANK="1", LOCAL_WORLD_SIZE="2", SPMDGUARD_HOST="a"),
        rank(3, 6, LOCAL_RANK="1", LOCAL_WORLD_SIZE="2", SPMDGUARD_HOST="b"),
    ]
    found = meet(zygote, *environments, timeout=1.0, agent_store=agent_store)
    for each in found:
        assert each["codes"] == ["missing-rank"]
        assert each["text"].startswith("ranks 2, 4-5 of 6 did not come")
        assert "expected: rank 2 (host b); no process came from the hosts of ranks 4-5" in each["text"]
        assert f"rank 3 (process {found[2]['pid']} on host b)" in each["text"]


def test_without_rank_0_the_others_say_so(zygote: Zygote) -> None:
    """Where rank 0 should hold the store and is missing, the others name it at the deadline."""
    found = meet(zygote, rank(1, 3), rank(2, 3), timeout=1.0, agent_store=False)
    for each in found:
        assert each["codes"] == ["store-unreachable"]
        assert each["text"].startswith("rank 0 did not come: it should hold the store at 127.0.0.1:")


def test_an_address_that_nobody_knows_is_named_at_once(zygote: Zygote) -> None:
    """A MASTER_ADDR that cannot be resolved is named by those that have it, long before the deadline."""
    found = meet(zygote, rank(1, MASTER_ADDR="no-such-host.invalid"), agent_store=False)
    assert found[0]["codes"] == ["address-unresolvable"]
    assert f"rank 1 (process {found[0]['pid']} on host b)" in found[0]["text"]


def test_rank_0_on_another_host_is_named(zygote: Zygote) -> None:
    """Where MASTER_ADDR is no address of the host of rank 0, rank 0 says so."""
    found = meet(zygote, rank(0, MASTER_ADDR="192.0.2.99"), timeout=1.0, agent_store=False)
    assert found[0]["codes"] == ["address-elsewhere"]
    assert found[0]["text"].startswith("rank 0 runs on host a, but MASTER_ADDR '192.0.2.99' is no address")


def test_missing_variables_are_named(zygote: Zygote) -> None:
    """What a launcher must say and does not is named at once."""
    port = str(free_port())
    no_size = meet(zygote, rank(0, WORLD_SIZE=None, MASTER_PORT=port), agent_store=False)
    no_address = meet(zygote, rank(0, MASTER_ADDR=None), agent_store=False)
    titles = [found[0]["text"].splitlines()[0] for found in (no_size, no_address)]
    assert titles == ["WORLD_SIZE is not set", "MASTER_ADDR is not set"]


def test_versions_are_compared(zygote: Zygote, tmp_path: Path) -> None:
    """Other installed versions on one rank are named, unless they are allowed."""
    folder = tmp_path / "torch-2.1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 2.1.0\n")
    environments = [rank(0), rank(1, path=[str(tmp_path)])]
    for each in meet(zygote, *environments, agent_store=False):
        assert each["codes"] == ["versions-differ"]
        assert each["text"].startswith("ranks run different versions of torch")
        assert "on host b): 2.1.0" in each["text"]
    allowed = meet(zygote, *environments, agent_store=False, allow=["versions"])
    assert [each["codes"] for each in allowed] == [[], []]


def test_scripts_are_compared(zygote: Zygote, tmp_path: Path) -> None:
    """Another content of the script on one rank is named, with both paths."""
    scripts = [tmp_path / "one.py", tmp_path / "two.py"]
    for number, script in enumerate(scripts):
        script.write_text(f"a = {number}\n")
    environments = [rank(number, script=str(script)) for number, script in enumerate(scripts)]
    for each in meet(zygote, *environments, agent_store=False):
        assert each["codes"] == ["script-differs"]
        assert all(str(script) in each["text"] for script in scripts)


@pytest.mark.parametrize("kind", ["huge", "nested", "types"])
def test_hostile_records_are_named_and_crash_nobody(zygote: Zygote, kind: str) -> None:
    """A record that is no identity is a fault that every rank is told; nothing of it reaches the terminal."""
    ended = zygote.run(
        "launching:hostile",
        ranks=2,
        timeout_s=BOUND_S,
        environments=[rank(0), rank(1)],
        timeout=2.0,
        kind=kind,
    )
    for each in answers(ended):
        assert each["codes"][0] == "unreadable-record"
        assert each["text"].replace("\n", "").isprintable()


@pytest.mark.parametrize("kind", ["verdict", "fault"])
def test_hostile_verdicts_are_refused(zygote: Zygote, kind: str) -> None:
    """A verdict that cannot be read, or steers a terminal, ends the launch with printable text of bounded length."""
    ended = zygote.run(
        "launching:hostile",
        ranks=3,
        timeout_s=BOUND_S,
        environments=[rank(0, 3), rank(1, 3), rank(2, 3)],
        timeout=2.0,
        kind=kind,
    )
    told = [each for each in answers(ended) if each["codes"]]
    assert len(told) >= 2
    for each in told:
        assert each["text"].replace("\n", "").isprintable()
        assert len(each["text"]) < 20_000
