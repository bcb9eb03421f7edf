"""What follows from the facts: problems, what they cost, and the exact lines that mend them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from spmdguard.format import escape_text
from spmdguard.preflight.environment.parts import Advice, format_size, num_local_ranks
from spmdguard.preflight.environment.variable_advice import about_threads, about_variables

__all__ = ["find_advice"]

_MIB = 2**20
_SHM_PER_RANK = 256 * _MIB
_MIN_SHM = 1024 * _MIB
_MIN_OPEN_FILES = 4096
_SLOW_LOOKUP_S = 0.5
_OLDEST_DRIVER = {"11": 450, "12": 525, "13": 580}
_LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")


def find_advice(facts: Mapping[str, Any]) -> list[Advice]:
    """All advice, problems first."""
    found = [
        *_about_memory(facts),
        *_about_limits(facts),
        *_about_network(facts),
        *_about_versions(facts),
        *_about_gpus(facts),
        *about_variables(facts),
        *about_threads(facts),
    ]
    order = ("problem", "cost", "hint")
    return sorted(found, key=lambda advice: order.index(advice.level))


def spans_hosts(facts: Mapping[str, Any]) -> bool:
    """Whether the launcher says that the job has ranks on other hosts."""
    size, local = facts["launch"].get("world_size"), facts["launch"].get("local_world_size")
    return bool(size and local and size > local)


def _about_memory(facts: Mapping[str, Any]) -> Iterator[Advice]:
    machine, ranks = facts["machine"], num_local_ranks(facts)
    shared, need = machine["shared_memory"], max(_MIN_SHM, _SHM_PER_RANK * ranks)
    if shared is None:
        yield Advice("problem", "memory", "there is no /dev/shm", "data loaders and NCCL exchange through it")
    elif shared["free"] < need:
        yield Advice(
            "problem",
            "memory",
            f"/dev/shm has {format_size(shared['free'])} free of {format_size(shared['size'])}; "
            f"{ranks} rank{'' if ranks == 1 else 's'} want {format_size(need)}",
            "data loaders and NCCL exchange through it; a full one ends in `Bus error` or `unhandled system error` "
            "(docker run --shm-size=16g, or --ipc=host)",
        )
    limit, memory = machine["memory_limit"], machine["memory"]
    if limit and memory and limit < memory / 2:
        yield Advice(
            "hint",
            "memory",
            f"the container may use {format_size(limit)} of the host's {format_size(memory)}",
            "a process over the limit is killed without a word: exit code 137 or signal 9",
        )


def _about_limits(facts: Mapping[str, Any]) -> Iterator[Advice]:
    machine = facts["machine"]
    files = machine["open_files"]
    need = max(_MIN_OPEN_FILES, 1024 + 2 * (facts["launch"].get("world_size") or 0))
    if files is not None and files < need:
        yield Advice(
            "problem" if files < 1024 else "hint",
            "limits",
            f"a process may open {files} files; {need} are advised",
            "each rank holds a connection to each other, and rank 0 one to all in the store",
            f"ulimit -n {max(need, 65536)}",
        )
    locked = machine["locked_memory"]
    if locked is not None and machine["infiniband"]:
        yield Advice(
            "problem",
            "limits",
            f"a process may lock {format_size(locked)} of memory, and this host has {', '.join(machine['infiniband'])}",
            "InfiniBand registers its buffers as locked memory; without it NCCL fails or falls back to sockets",
            "ulimit -l unlimited",
        )


def _about_network(facts: Mapping[str, Any]) -> Iterator[Advice]:
    network = facts["network"]
    real = [
        each["name"]
        for each in network["interfaces"]
        if each["up"] and each["addresses"] and not each["loopback"] and not each["virtual"]
    ]
    gloo, nccl = network["gloo"], network["nccl"]
    loopback = {each["name"] for each in network["interfaces"] if each["loopback"]}
    for library, picked in (("GLOO", gloo), ("NCCL", nccl)):
        if picked["missing"]:
            yield Advice(
                "problem",
                "network",
                f"{library}_SOCKET_IFNAME names {', '.join(map(escape_text, picked['missing']))}, which this host "
                "does not have",
                f"it has {', '.join(real) or 'no interface besides loopback'}",
                f"export {library}_SOCKET_IFNAME={real[0]}" if real else "",
            )
    if gloo["name"] in loopback and real and not gloo["missing"]:
        yield Advice(
            "problem" if spans_hosts(facts) else "hint",
            "network",
            f"gloo would listen on {gloo['name']}, this host's loopback ({gloo['why']})",
            "ranks on other hosts cannot reach it; with one host it does not matter",
            f"export GLOO_SOCKET_IFNAME={real[0]}",
        )
    if len(real) > 1 and nccl["why"] != "NCCL_SOCKET_IFNAME says so":
        yield Advice(
            "hint",
            "network",
            f"this host has several interfaces ({', '.join(real)}); NCCL would use {', '.join(nccl['names'])}",
            "hosts that pick interfaces of different networks wait for each other until the timeout",
            f"export NCCL_SOCKET_IFNAME={real[0]}",
        )
    lookup = network.get("lookup")
    if lookup and lookup["seconds"] > _SLOW_LOOKUP_S:
        yield Advice(
            "cost",
            "network",
            f"it took {lookup['seconds']:.1f} s to look up a name for {escape_text(lookup['address'])}",
            "torch's store looks one up for every rank that connects, and answers nobody meanwhile: see the name "
            "servers in /etc/resolv.conf",
        )
    yield from _about_master(facts)


def _about_master(facts: Mapping[str, Any]) -> Iterator[Advice]:
    master = facts["network"]["master"]
    if master is None:
        return
    host = master["address"].rpartition(":")[0]
    if spans_hosts(facts) and host in _LOOPBACK_NAMES:
        yield Advice(
            "problem",
            "network",
            f"MASTER_ADDR is {host}, but the job spans hosts",
            "each host would meet itself",
        )
    if master["kind"] in ("unset", "unresolvable", "foreign"):
        text = master["reason"] if master["kind"] == "unset" else f"{master['address']}: {master['reason']}"
        yield Advice("problem", "network", escape_text(text), "no rank can reach the job's store there")
    elif master["kind"] != "store":
        yield Advice(
            "hint",
            "network",
            f"no job answers at MASTER_ADDR:MASTER_PORT, {escape_text(master['address'])}: "
            f"{escape_text(master['reason'])}",
            "that is normal before the job has started; while it runs, check the address, and look for a firewall",
        )


def _about_versions(facts: Mapping[str, Any]) -> Iterator[Advice]:
    versions = facts["versions"]
    cuda, driver = versions.get("cuda"), versions.get("driver")
    oldest = _OLDEST_DRIVER.get((cuda or "").split(".")[0])
    if oldest and driver and driver.split(".")[0].isdecimal() and int(driver.split(".")[0]) < oldest:
        yield Advice(
            "problem",
            "versions",
            f"torch was built for CUDA {cuda}, and the driver is {driver}",
            f"CUDA {cuda} needs driver {oldest} or newer",
        )
    if facts.get("gpus") and "torch" in versions and cuda is None and "hip" not in versions:
        yield Advice("problem", "versions", f"torch {versions['torch']} has no CUDA", "this host has GPUs")
    if cuda and driver is None and not facts.get("gpus"):
        yield Advice("hint", "versions", f"torch was built for CUDA {cuda}", "this host has no driver for it")


def _about_gpus(facts: Mapping[str, Any]) -> Iterator[Advice]:
    gpus = facts.get("gpus")
    if not gpus:
        return
    matrix = gpus["peer_to_peer"]
    blocked = [
        f"{i}-{j}"
        for i, row in enumerate(matrix)
        for j, cell in enumerate(row)
        if i < j and cell not in ("OK", "X")
    ]
    if blocked:
        yield Advice(
            "cost",
            "gpus",
            f"GPUs cannot read each other's memory: {', '.join(blocked[:12])}",
            "they exchange through memory of the CPU; in virtual machines look for ACS and IOMMU",
        )
    ranks = facts["launch"].get("local_world_size")
    if ranks and ranks > len(gpus["devices"]):
        yield Advice(
            "problem",
            "gpus",
            f"{ranks} ranks on a host with {len(gpus['devices'])} GPUs",
            "NCCL refuses to share one",
        )
