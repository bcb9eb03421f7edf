"""`spmdguard env`: facts from made-up machines, advice that follows, baselines, exit codes, no torch."""

from __future__ import annotations

import copy
import json
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spmdguard.launch import variables
from spmdguard.preflight.environment.advice import find_advice
from spmdguard.preflight.environment.facts import compare_facts, find_facts, read_facts
from spmdguard.preflight.environment.gpus import find_gpus
from spmdguard.preflight.environment.machine import find_memory_limit
from spmdguard.preflight.environment.network import find_interfaces, pick_for_gloo, pick_for_nccl, time_lookup
from spmdguard.preflight.environment.report import render_report

GIB = 2**30


def interface(name: str, *addresses: str, up: bool = True) -> dict[str, Any]:
    virtual = name.startswith(("docker", "veth"))
    return {
        "name": name,
        "up": up,
        "addresses": list(addresses),
        "loopback": name == "lo",
        "virtual": virtual,
        "megabits": None,
    }


LO, ETH, IB, DOCKER = (
    interface("lo", "127.0.0.1"),
    interface("eth0", "10.0.0.5"),
    interface("ib0", "10.1.0.5"),
    interface("docker0", "172.17.0.1"),
)


def machine(**changes: Any) -> dict[str, Any]:
    """A good machine, with changes by dotted path."""
    facts: dict[str, Any] = {
        "format": 1,
        "host": "a",
        "launch": {"launcher": "none", "rank": None, "world_size": None, "local_world_size": None},
        "versions": {"python": "3.11.7", "torch": "2.13.0"},
        "machine": {
            "cpus": 16,
            "memory": 64 * GIB,
            "memory_limit": None,
            "shared_memory": {"size": 32 * GIB, "free": 32 * GIB},
            "open_files": 65536,
            "locked_memory": None,
            "infiniband": [],
        },
        "network": {
            "host": "a",
            "host_addresses": ["10.0.0.5"],
            "interfaces": [LO, ETH],
            "gloo": {"name": "eth0", "why": "", "missing": []},
            "nccl": {"names": ["eth0"], "why": "it prefers", "missing": []},
            "master": None,
        },
        "gpus": None,
        "variables": {},
    }
    for path, value in changes.items():
        *parents, last = path.split("__")
        target = facts
        for name in parents:
            target = target[name]
        target[last] = value
    return facts


GPUS = {
    "devices": [{"index": str(i), "name": "H200", "memory.total": "143771"} for i in range(2)],
    "links": [["X", "NV18"], ["NV18", "X"]],
    "peer_to_peer": [["X", "OK"], ["OK", "X"]],
}
BLOCKED = {**GPUS, "peer_to_peer": [["X", "NS"], ["NS", "X"]]}
SPANNING = {"launcher": "torchrun", "rank": 0, "world_size": 4, "local_world_size": 2}


def test_a_good_machine_gets_no_advice() -> None:
    """Where nothing is wrong, nothing is said."""
    assert find_advice(machine()) == []


@pytest.mark.parametrize(
    ("changes", "level", "text"),
    [
        ({"machine__shared_memory": None}, "problem", "there is no /dev/shm"),
        ({"machine__shared_memory": {"size": 2**26, "free": 2**26}}, "problem", "/dev/shm has 64 MiB free"),
        ({"machine__memory_limit": 8 * GIB}, "hint", "the container may use 8 GiB of the host's 64 GiB"),
        ({"machine__open_files": 256}, "problem", "a process may open 256 files; 4096 are advised"),
        ({"machine__open_files": 1024}, "hint", "a process may open 1024 files"),
        ({"machine__locked_memory": 65536, "machine__infiniband": ["mlx5_0"]}, "problem", "may lock 64 KiB"),
        ({"network__gloo": {"name": "lo", "why": "x", "missing": []}}, "hint", "gloo would listen on lo"),
        (
            {"network__gloo": {"name": "lo", "why": "x", "missing": []}, "launch": SPANNING},
            "problem",
            "gloo would listen on lo",
        ),
        (
            {"network__nccl": {"names": [], "why": "NCCL_SOCKET_IFNAME", "missing": ["eth7"]}},
            "problem",
            "NCCL_SOCKET_IFNAME names eth7, which this host does not have",
        ),
        ({"network__interfaces": [LO, ETH, IB]}, "hint", "this host has several interfaces (eth0, ib0)"),
        (
            {
                "network__master": {"address": "127.0.0.1:1", "kind": "store", "reason": ""},
                "launch": SPANNING,
            },
            "problem",
            "MASTER_ADDR is 127.0.0.1, but the job spans hosts",
        ),
        (
            {"network__lookup": {"address": "10.0.0.5", "seconds": 5.01}},
            "cost",
            "it took 5.0 s to look up a name for 10.0.0.5",
        ),
        (
            {"network__master": {"address": "b:1", "kind": "foreign", "reason": "no store"}},
            "problem",
            "b:1: no store",
        ),
        (
            {"network__master": {"address": "b:1", "kind": "refused", "reason": "x"}},
            "hint",
            "no job answers at MASTER_ADDR:MASTER_PORT, b:1: x",
        ),
        ({"versions": {"torch": "2", "cuda": "13.0", "driver": "550.1"}}, "problem", "built for CUDA 13.0"),
        ({"versions": {"torch": "2+cpu"}, "gpus": GPUS}, "problem", "torch 2+cpu has no CUDA"),
        ({"gpus": BLOCKED}, "cost", "GPUs cannot read each other's memory: 0-1"),
        (
            {"gpus": GPUS, "launch": {**SPANNING, "local_world_size": 4}},
            "problem",
            "4 ranks on a host with 2 GPUs",
        ),
        (
            {"variables": {"NCCL_IB_CUDA_SUPPORT": "1"}},
            "hint",
            "NCCL_IB_CUDA_SUPPORT was renamed to NCCL_NET_GDR",
        ),
        ({"variables": {"NCCL_BLOCKING_WAIT": "0"}}, "hint", "NCCL_BLOCKING_WAIT was renamed to TORCH_NCCL_"),
        (
            {"variables": {"NCCL_BLOCKING_WAIT": "1"}},
            "cost",
            "NCCL_BLOCKING_WAIT=1 (now TORCH_NCCL_BLOCKING_WAIT)",
        ),
        ({"variables": {"TORCH_DISTRIBUTED_DEBUG": "ALL"}}, "problem", "TORCH_DISTRIBUTED_DEBUG is 'ALL'"),
        ({"variables": {"TORCH_DISTRIBUTED_DEBUG": "DETAIL"}}, "cost", "TORCH_DISTRIBUTED_DEBUG=DETAIL"),
        ({"variables": {"NCCL_DEBUG_FILE": "x"}}, "hint", "NCCL_DEBUG_FILE has no effect without NCCL_DEBUG"),
        ({"variables": {"TORCH_NCCL_BLOCKING_WAIT": "1"}}, "cost", "TORCH_NCCL_BLOCKING_WAIT=1"),
        (
            {"variables": {"NCCL_IB_DISABLE": "1", "NCCL_IB_HCA": "mlx5"}},
            "problem",
            "NCCL_IB_DISABLE=1 contradicts NCCL_IB_HCA=mlx5",
        ),
        ({"variables": {"OMP_NUM_THREADS": "32"}}, "cost", "1 rank with OMP_NUM_THREADS=32 on 16 processors"),
    ],
)
def test_each_problem_is_told(changes: dict[str, Any], level: str, text: str) -> None:
    """Each fact that matters gives its advice, with the level that it deserves."""
    found = [each for each in find_advice(machine(**changes)) if text in each.text]
    assert [each.level for each in found] == [level], find_advice(machine(**changes))
    assert all(each.why for each in found)


def test_exports_are_lines_for_this_machine() -> None:
    """The report ends with the export lines, with names of interfaces that are there."""
    facts = machine(network__gloo={"name": "lo", "why": "x", "missing": []}, launch=SPANNING)
    report = render_report(facts, find_advice(facts), ["versions: torch was 1, is 2"])
    assert (
        "recommended for this machine, before the job starts:\n  export GLOO_SOCKET_IFNAME=eth0\n" in report
    )
    assert "against the baseline:\n  versions: torch was 1, is 2\n" in report


def test_variables_to_unset_are_among_the_lines_to_run() -> None:
    """What should go is recommended beside what should be set."""
    facts = machine(variables={"NCCL_BLOCKING_WAIT": "1"})
    report = render_report(facts, find_advice(facts))
    assert report.endswith(
        "recommended for this machine, before the job starts:\n  unset NCCL_BLOCKING_WAIT\n\n1 cost (slow)\n"
    )


def test_the_last_line_counts_what_was_found() -> None:
    """It counts each level in the words that the report uses, and says what the level means."""

    def last_line(**changes: Any) -> str:
        facts = machine(**changes)
        return render_report(facts, find_advice(facts)).splitlines()[-1]

    assert last_line() == "nothing to remark"
    wrong = {"TORCH_DISTRIBUTED_DEBUG": "ALL", "CUDA_LAUNCH_BLOCKING": "1", "NCCL_DEBUG_FILE": "x"}
    assert last_line(variables=wrong, machine__open_files=2048) == (
        "1 problem (will fail or hang), 1 cost (slow), 2 hints (better so)"
    )


def test_a_baseline_without_a_difference_is_told() -> None:
    """Whoever compares hears that nothing differs; whoever does not compare hears nothing of it."""
    assert "against the baseline:\n  no difference\n" in render_report(machine(), [], [])
    assert "baseline" not in render_report(machine(), [])


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        ("", ["ib0"]),
        ("eth", ["eth0"]),
        ("=eth", []),
        ("=eth0", ["eth0"]),
        ("^ib,docker", ["lo", "eth0"]),
        ("eth0,ib0", ["eth0", "ib0"]),
    ],
)
def test_nccl_picks_by_its_rules(named: str, expected: list[str]) -> None:
    """Prefixes, exact names and exclusions, and without them InfiniBand before others."""
    assert pick_for_nccl([LO, ETH, IB, DOCKER], named)["names"] == expected


def test_nccl_avoids_docker_and_loopback() -> None:
    """Bridges of containers come after real interfaces, loopback last; what is down does not count."""
    assert pick_for_nccl([LO, DOCKER, ETH], "")["names"] == ["eth0"]
    assert pick_for_nccl([LO, DOCKER, interface("eth0", "10.0.0.5", up=False)], "")["names"] == ["docker0"]
    assert pick_for_nccl([LO], "")["names"] == ["lo"]


def test_gloo_follows_the_hosts_name() -> None:
    """gloo listens where the host's name leads, on the interface that is named, or on loopback."""
    assert pick_for_gloo([LO, ETH], ["10.0.0.5"], "")["name"] == "eth0"
    assert pick_for_gloo([LO, ETH], ["127.0.0.1"], "")["name"] == "lo"
    assert pick_for_gloo([LO, ETH], ["10.9.9.9"], "")["name"] == "lo"
    assert pick_for_gloo([LO, ETH], [], "eth0,eth1")["missing"] == ["eth1"]


def test_a_name_server_that_does_not_answer_is_a_fact(monkeypatch: pytest.MonkeyPatch) -> None:
    """Addresses are looked up as torch's store does it, each in bounded time; an unknown one is looked up quickly."""
    asked = []
    silent = threading.Event()

    def look_up(address: tuple[str, int, int, int], flags: int) -> None:
        asked.append(address[0])
        if address[0].endswith("10.0.0.5"):
            silent.wait(60)
        raise socket.gaierror("no name")

    monkeypatch.setattr(socket, "getnameinfo", look_up)
    found = time_lookup(["::1", "10.0.0.5", "10.1.0.5"], limit_s=0.2)
    silent.set()
    assert (asked, found["address"]) == (["::ffff:127.0.0.1", "::ffff:10.0.0.5"], "10.0.0.5")
    assert found["seconds"] >= 0.2


def test_interfaces_of_this_host_are_found() -> None:
    """Loopback with its address is among the interfaces."""
    found = {each["name"]: each for each in find_interfaces(Path("/"))}
    assert found["lo"]["loopback"] and "127.0.0.1" in found["lo"]["addresses"]


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"proc/self/cgroup": "0::/x/y\n", "sys/fs/cgroup/x/y/memory.max": "max\n"}, None),
        (
            {
                "proc/self/cgroup": "0::/x/y\n",
                "sys/fs/cgroup/x/memory.max": "1073741824\n",
                "sys/fs/cgroup/x/y/memory.max": "max\n",
            },
            GIB,
        ),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "2147483648\n"}, 2 * GIB),
        (
            {
                "proc/self/cgroup": "5:cpu:/\n4:memory:/docker/abc\n0::/\n",
                "sys/fs/cgroup/memory/memory.limit_in_bytes": "536870912\n",
            },
            GIB // 2,
        ),
        (
            {
                "proc/self/cgroup": "4:memory:/\n",
                "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
            },
            None,
        ),
        ({"proc/self/cgroup": "0::/../../etc\n"}, None),
        ({}, None),
    ],
)
def test_memory_limits_of_containers(tmp_path: Path, files: dict[str, str], expected: int | None) -> None:
    """The smallest limit above the process counts, in both versions of control groups; none is None."""
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert find_memory_limit(tmp_path) == expected


SMI = {
    "--query": "0, NVIDIA H200, GPU-1, 143771, 570.1, 0:1\n1, NVIDIA H200, GPU-2, 143771, 570.1, 0:2\n",
    "-m": "\t\x1b[4mGPU0\tGPU1\tNIC0\tCPU Affinity\x1b[0m\nGPU0\t X \tNV18\tPIX\t0-47\nGPU1\tNV18\t X \tSYS\t0-47\n"
    "NIC0\tPIX\tSYS\t X \t\n\nLegend:\n  X    = Self\n",
    "r": " \tGPU0\tGPU1\nGPU0\tX\tOK\nGPU1\tNS\tX\n\nLegend:\n  X = Self\n",
}


def test_gpus_are_read_from_nvidia_smi() -> None:
    """Devices, links and peer-to-peer reads are taken from the tables; without the tool there is no GPU."""

    def run(arguments: list[str]) -> str:
        return SMI["--query"] if arguments[0].startswith("--query") else SMI[arguments[-1]]

    found = find_gpus(run)
    assert found is not None
    assert [each["name"] for each in found["devices"]] == ["NVIDIA H200"] * 2
    assert found["links"] == [["X", "NV18"], ["NV18", "X"]]
    assert found["peer_to_peer"] == [["X", "OK"], ["NS", "X"]]
    assert find_gpus(lambda _: "") is None


def test_baselines_show_what_changed(tmp_path: Path) -> None:
    """Versions and GPUs that differ are grave, variables and limits are not; ranks differ anyway."""
    before = machine(variables={"NCCL_ALGO": "Ring", "RANK": "0"})
    now = machine(
        versions={"python": "3.11.7", "torch": "2.12.0"}, variables={"RANK": "3"}, machine__open_files=1024
    )
    assert compare_facts(before, now) == [
        (True, "versions: torch was 2.13.0, is 2.12.0"),
        (False, "machine: open_files was 65536, is 1024"),
        (False, "variables: NCCL_ALGO was Ring, is not there"),
    ]
    assert compare_facts(before, copy.deepcopy(before)) == []
    path = tmp_path / "baseline.json"
    path.write_text(json.dumps(before))
    assert read_facts(path) == before


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", "[" * 50_000, '{"format": 2}', '{"format": 1, "versions": []}']
)
def test_bad_baselines_are_value_errors(tmp_path: Path, text: str) -> None:
    """A file that holds no facts is a ValueError that names it."""
    path = tmp_path / "baseline.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"baseline\.json"):
        read_facts(path)


NAMES = st.sampled_from([*variables.RENAMED, *variables.COSTLY, *variables.NEEDS, *variables.ALLOWED_VALUES])


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(NAMES, st.text(max_size=60), max_size=6))
def test_any_value_of_a_variable_prints_safely(values: dict[str, str]) -> None:
    """Whatever a variable holds, the report has no control characters."""
    facts = machine(variables=values, host="\x1b[2J")
    report = render_report(facts, find_advice(facts), [])
    assert report.replace("\n", "").isprintable()


def env_command(*argv: str, **environment: str) -> subprocess.CompletedProcess[str]:
    program = "import sys\nfrom spmdguard.cli import main\ncode = main(['env', *sys.argv[1:]])\n"
    program += "assert 'torch' not in sys.modules\nsys.exit(code)"
    return subprocess.run(
        [sys.executable, "-c", program, *argv],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, **environment},
    )


def test_the_command_reports_checks_and_compares(tmp_path: Path) -> None:
    """Text, JSON, exit codes and baselines, in a process that never imports torch."""
    saved = tmp_path / "saved.json"
    first = env_command("--json", "--save", str(saved))
    assert first.returncode == 0, first.stderr
    assert {"advice", "differences", "versions", "network"} <= set(json.loads(first.stdout))
    wrong = {"TORCH_DISTRIBUTED_DEBUG": "ALL"}
    checked = env_command("--check", "--against", str(saved), **wrong)
    assert checked.returncode == 1, checked.stderr
    assert "variables: TORCH_DISTRIBUTED_DEBUG was not there, is ALL" in checked.stdout
    assert "problem[variables]: TORCH_DISTRIBUTED_DEBUG is 'ALL'" in checked.stdout
    gone = env_command("--against", str(tmp_path / "none.json"))
    expected = f"spmdguard env: error: cannot read {tmp_path / 'none.json'}: No such file or directory\n"
    assert (gone.returncode, gone.stderr) == (2, expected)


def test_a_silent_master_is_a_fact(tmp_path: Path) -> None:
    """Where nobody holds the store, the facts say so and gathering them does not wait for it."""
    facts = find_facts({"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"}, reach_timeout_s=0.1)
    assert facts["network"]["master"]["kind"] == "refused"
    unset = find_facts({"MASTER_PORT": "1"})["network"]["master"]
    assert (unset["address"], unset["reason"]) == ("?:1", "MASTER_ADDR is not set")
