"""What one process finds wrong with itself, and what all records together say; no processes, no store."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spmdguard.launch.checks import check_identity
from spmdguard.launch.faults import ADVICE, Fault, read_fault
from spmdguard.launch.identity import Identity, find_identity
from spmdguard.launch.judging import Arrivals, find_faults, find_missing
from spmdguard.launch.neighbours import Neighbour, find_strays, read_neighbour


def process(rank: int | None, size: int = 4, **more: Any) -> Identity:
    host = "ab"[(rank or 0) // 2 % 2]
    return Identity(**{"host": host, "pid": 100 + (rank or 0), "rank": rank, "world_size": size, **more})


def arrived(*processes: Identity) -> Arrivals:
    arrivals = Arrivals()
    for each in processes:
        arrivals.add(each)
    return arrivals


def codes(*processes: Identity, allowed: tuple[str, ...] = ()) -> list[str]:
    arrivals = arrived(*processes)
    found = [fault.code for fault in find_faults(arrivals, allowed)]
    assert arrivals.is_suspect or not found, "a fault that nobody would have looked for"
    return found


def test_what_is_right_has_no_fault() -> None:
    """All ranks with the same claims are complete and without fault."""
    arrivals = arrived(*(process(rank) for rank in (2, 0, 3, 1)))
    assert (arrivals.is_complete, arrivals.is_suspect, find_faults(arrivals)) == (True, False, [])


@pytest.mark.parametrize(
    ("odd", "code", "allow"),
    [
        ({"world_size": 8}, "world-size-differs", None),
        ({"job": "x"}, None, None),
        ({"script_hash": "y"}, "script-differs", "script"),
        ({"arguments_hash": "y"}, "arguments-differ", "arguments"),
        ({"versions": {"torch": "2.0"}}, "versions-differ", "versions"),
        ({"versions": {"driver": "550"}}, None, None),
        ({"environment": {"NCCL_ALGO": "Ring"}}, "environment-differs", "environment"),
        ({"environment": {"NCCL_DEBUG": "INFO"}}, None, None),
        ({"faults": ("bad-variable: x",)}, "bad-variable", None),
        ({"rank": 1}, "duplicate-rank", None),
    ],
)
def test_each_difference_is_its_own_fault(odd: dict[str, Any], code: str | None, allow: str | None) -> None:
    """One rank that differs is named by the fault of its kind, and by none where that is allowed."""
    others = [process(rank) for rank in (0, 1)]
    strange = process(2, **odd) if "rank" not in odd else process(1, pid=7)
    assert codes(*others, strange) == ([] if code is None else [code])
    if allow:
        assert codes(*others, strange, allowed=(allow,)) == []


def test_disagreement_names_the_groups() -> None:
    """Few processes are named one by one, many as ranges of ranks by host, as the house writes it."""
    few = find_faults(arrived(process(0), process(1, size=2)))
    assert few[0].saw == "rank 0 (process 100 on host a): 4 | rank 1 (process 101 on host a): 2"
    wide = [process(rank, 8 if rank < 8 else 16, host="abc"[rank // 8]) for rank in range(24)]
    assert (
        find_faults(arrived(*wide))[0].saw
        == "ranks 0-7 (host a): 8 | ranks 8-15 (host b), ranks 16-23 (host c): 16"
    )


def test_processes_without_a_rank_are_counted() -> None:
    """Where many processes have no rank, one is named and the others are counted."""
    nameless = [process(None, pid=pid, faults=("bad-variable: RANK is not set",)) for pid in range(5)]
    saw = find_faults(arrived(process(0), *nameless))[0].saw
    assert saw == "a process without a rank (process 0 on host a) and 4 more"


def test_reports_stay_short_for_thousands_of_ranks() -> None:
    """Faults of all ranks of 500 hosts are few lines of bounded length."""
    ranks = range(4000)
    everyone = [
        process(
            rank,
            4000 + rank % 7,
            host=f"node{rank // 8:03}",
            faults=(f"bad-variable: {rank}",),
            versions={"torch": str(rank)},
            arguments_hash=str(rank),
        )
        for rank in ranks
    ]
    faults = find_faults(arrived(*everyone))
    assert {fault.code for fault in faults} == {
        "bad-variable",
        "world-size-differs",
        "versions-differ",
        "arguments-differ",
    }
    assert sum(len(fault.title) + len(fault.saw) for fault in faults) < 6000


def test_all_ranks_twice_is_a_second_launch() -> None:
    """Where every rank is claimed twice, the job was launched twice; where one is, that rank is named."""
    twice = [process(rank, 2, pid=pid + rank) for rank in (0, 1) for pid in (10, 20)]
    assert codes(*twice) == ["launched-twice"]
    assert find_faults(arrived(*twice[:3]))[0].title == "rank 0 is claimed by 2 processes"


def test_missing_ranks_are_expected_on_the_host_of_their_neighbours() -> None:
    """Local ranks tell where a missing rank belongs, and on which ranks' hosts nothing runs."""
    came = [
        process(rank, 8, host="ab"[rank // 4], local_rank=rank % 4, local_world_size=4) for rank in (0, 1, 2)
    ]
    fault = find_missing(arrived(*came), 10)[0]
    assert fault.title == "ranks 3-7 of 8 did not come"
    assert "expected: rank 3 (host a); no process came from the hosts of ranks 4-7" in fault.saw


def test_a_neighbour_with_another_port_explains_a_missing_rank() -> None:
    """A process of the same launcher with the missing rank and another address is named; a job of its own is not."""
    stray = Neighbour(7, 1, 2, "h:2", "a")
    came = process(0, 2, address="h:1", beside=(stray.to_text(),))
    fault = find_missing(arrived(came), 2)[0]
    assert fault.code == "port-differs"
    assert (
        "process 7 on host a was started as rank 1 and has MASTER_ADDR:MASTER_PORT h:2, not h:1" in fault.saw
    )
    own_job = process(0, 2, address="h:1", beside=(stray.to_text(), "8 0 2 h:2 a"))
    assert find_missing(arrived(own_job), 2)[0].code == "missing-rank"


NEIGHBOURS = st.builds(
    Neighbour, st.integers(1, 9), st.integers(0, 3), st.just(4), st.sampled_from(["a:1", "b:2"]), st.just("h")
)


@settings(deadline=None, max_examples=50)
@given(st.lists(NEIGHBOURS, max_size=6))
def test_strays_are_never_at_our_own_address(neighbours: list[Neighbour]) -> None:
    """What is called astray claims a rank that is asked for, and has another address; texts survive the way."""
    for each in find_strays("a:1", 4, {1, 2}, neighbours):
        assert each.address == "b:2" and each.rank in (1, 2)
    assert [read_neighbour(each.to_text()) for each in neighbours] == neighbours


CLAIMS = st.tuples(st.none() | st.integers(0, 5), st.integers(1, 4), st.sampled_from("xy"), st.integers(1, 3))


@settings(deadline=None, max_examples=100)
@given(st.lists(CLAIMS, min_size=1, max_size=8), st.randoms(use_true_random=False))
def test_the_verdict_does_not_depend_on_the_order_of_arrival(claims: list, order: random.Random) -> None:
    """Whoever comes first, the same faults with the same words are found; a right launch has none (slow oracle)."""
    processes = [
        process(rank, size, script_hash=script, pid=pid * 10 + i)
        for i, (rank, size, script, pid) in enumerate(claims)
    ]
    shuffled = list(processes)
    order.shuffle(shuffled)
    found = find_faults(arrived(*processes))
    assert sorted(map(str, found)) == sorted(map(str, find_faults(arrived(*shuffled))))
    sizes = {each.world_size for each in processes}
    ranks = [each.rank for each in processes if each.rank is not None]
    right = len(sizes) == 1 and len({each.script_hash for each in processes}) == 1
    assert (found == []) == (right and len(set(ranks)) == len(ranks))


TORCHRUN = {"TORCHELASTIC_RUN_ID": "r", "GROUP_WORLD_SIZE": "2"}
RANK = {"RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "2"}


@pytest.mark.parametrize(
    ("environment", "parent", "devices", "expected"),
    [
        (RANK, {}, None, []),
        (RANK, {}, 2, []),
        (RANK, {}, 1, ["local-rank-beyond-devices"]),
        ({**RANK, "CUDA_VISIBLE_DEVICES": "1"}, {}, 1, []),
        ({**RANK, "CUDA_VISIBLE_DEVICES": "0"}, {}, 1, ["local-rank-beyond-devices"]),
        ({**RANK, "CUDA_VISIBLE_DEVICES": "0", "SLURM_LOCALID": "1"}, {}, 1, []),
        ({**RANK, "RANK": "4"}, {}, None, ["rank-too-large"]),
        ({**RANK, "LOCAL_RANK": "2"}, {}, None, ["rank-too-large"]),
        ({**RANK, "RANK": "-1"}, {}, None, ["bad-variable"]),
        ({**RANK, "WORLD_SIZE": "x", "LOCAL_RANK": ""}, {}, None, ["bad-variable"] * 2),
        ({"RANK": "1"}, {}, None, ["bad-variable"]),
        ({**RANK, "SLURM_PROCID": "1", "SLURM_STEP_ID": "0"}, {}, None, []),
        ({**RANK, "SLURM_PROCID": "0", "SLURM_STEP_ID": "0"}, {}, None, ["two-launchers"]),
        ({**RANK, "SLURM_PROCID": "0"}, {}, None, []),  # a batch script outside srun
        ({**RANK, "OMPI_COMM_WORLD_RANK": "2"}, {}, None, ["two-launchers"]),
        (
            {**RANK, **TORCHRUN, "SLURM_PROCID": "1", "SLURM_STEP_ID": "0", "SLURM_NTASKS": "2"},
            {},
            None,
            [],
        ),
        (
            {**RANK, **TORCHRUN, "SLURM_PROCID": "1", "SLURM_STEP_ID": "0", "SLURM_NTASKS": "4"},
            {},
            None,
            ["two-launchers"],
        ),
        ({**RANK, **TORCHRUN, "OMPI_COMM_WORLD_SIZE": "8"}, {}, None, ["two-launchers"]),
        ({**RANK, **TORCHRUN}, {"TORCHELASTIC_RUN_ID": "r"}, None, []),  # the agent
        ({**RANK, **TORCHRUN}, {**RANK, **TORCHRUN}, None, []),  # a shell script around the rank
        ({**RANK, **TORCHRUN}, {**RANK, **TORCHRUN, "RANK": "0"}, None, ["spawned-under-torchrun"]),
    ],
)
def test_a_process_checks_itself(
    environment: dict[str, str], parent: Mapping[str, str], devices: int | None, expected: list[str]
) -> None:
    """Each fault that one process can see alone is found, and what only looks like it is not."""
    me = find_identity(environment, argv=["x.py"], devices=devices)
    assert [fault.code for fault in check_identity(me, environment, lambda: parent)] == expected


def test_faults_travel_with_bounded_texts() -> None:
    """A fault is the same after the store; one from elsewhere is escaped and cut, or a ValueError."""
    fault = Fault("missing-rank", "rank 1 of 2 did not come", "rank 0 came")
    assert read_fault(fault.to_data()) == fault
    hostile = read_fault({"code": "\x1b", "title": "\x1b" * 9999, "saw": "\n" * 9999})
    assert all(text.isprintable() for text in (hostile.code, hostile.title, hostile.saw))
    assert len(hostile.title) + len(hostile.saw) < 2000
    for wrong in (None, [], {"code": "x"}, {"code": 1, "title": "", "saw": ""}):
        with pytest.raises(ValueError, match="form"):
            read_fault(wrong)
    assert all(ADVICE.values())
