"""Network interfaces of this host, which of them gloo and NCCL pick, and whether MASTER_ADDR can be reached.

gloo (torch ``ProcessGroupGloo::createDefaultDevice``) listens on the address that the host's own name leads to, and
on loopback where that fails. NCCL takes interfaces named ``ib*`` first, then any but ``lo`` and ``docker*``, then
``docker*``, then ``lo`` (NCCL manual, NCCL_SOCKET_IFNAME).
"""

from __future__ import annotations

import contextlib
import fcntl
import ipaddress
import socket
import struct
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from spmdguard.errors import StoreUnreachable
from spmdguard.group.bounded import DidNotReturn, call_bounded
from spmdguard.group.store import find_address, reach_store

__all__ = ["find_interfaces", "find_network", "pick_for_gloo", "pick_for_nccl", "time_lookup"]

_GET_ADDRESS = 0x8915  # SIOCGIFADDR
_IFF_UP = 1
_LOOKUP_S = 6.0
_VIRTUAL = (
    "docker",
    "veth",
    "br-",
    "virbr",
    "cni",
    "flannel",
    "cali",
    "tun",
    "tap",
    "dummy",
    "ifb",
    "podman",
)


def find_network(root: Path, environment: Mapping[str, str], timeout_s: float) -> dict[str, Any]:
    """Interfaces, what the libraries pick, and whether the job's store answers."""
    interfaces = find_interfaces(root)
    host = socket.gethostname()
    own = _resolve(host)
    return {
        "host": host,
        "host_addresses": own,
        "interfaces": interfaces,
        "gloo": pick_for_gloo(interfaces, own, environment.get("GLOO_SOCKET_IFNAME", "")),
        "nccl": pick_for_nccl(interfaces, environment.get("NCCL_SOCKET_IFNAME", "")),
        "master": _find_master(environment, timeout_s),
        "lookup": time_lookup(own),
    }


def time_lookup(host_addresses: Sequence[str], limit_s: float = _LOOKUP_S) -> dict[str, Any]:
    """How long it takes to find a name for an address of this host, as torch's store does for each connection.

    The slowest address and its seconds; at most ``limit_s``.
    """
    fours = [each for each in host_addresses if ":" not in each and not each.startswith("127.")]
    found: list[tuple[float, str]] = []
    for address in ("127.0.0.1", *fours[:1]):
        began_s = time.monotonic()
        with contextlib.suppress(DidNotReturn, OSError):
            call_bounded(partial(socket.getnameinfo, (f"::ffff:{address}", 0, 0, 0), 0), limit_s, "look up")
        found.append((round(time.monotonic() - began_s, 3), address))
    seconds, slowest = max(found)
    return {"address": slowest, "seconds": seconds}


def find_interfaces(root: Path) -> list[dict[str, Any]]:
    """Name, addresses, whether it is up, loopback or virtual, and megabits a second where known."""
    found = []
    sixes = _find_ipv6(root)
    for _, name in socket.if_nameindex():
        folder = root / "sys/class/net" / name
        flags = _read(folder / "flags")
        address = _find_ipv4(name)
        speed = _read(folder / "speed")
        found.append(
            {
                "name": name,
                "up": bool(int(flags, 16) & _IFF_UP) if flags else True,
                "addresses": [*([address] if address else []), *sixes.get(name, [])],
                "loopback": name == "lo" or (address or "").startswith("127."),
                "virtual": name.startswith(_VIRTUAL),
                "megabits": int(speed) if speed.isdecimal() else None,
            }
        )
    return found


def usable(interfaces: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Interfaces that are up and have an address."""
    return [each for each in interfaces if each["up"] and each["addresses"]]


def pick_for_gloo(
    interfaces: Sequence[Mapping[str, Any]], host_addresses: Sequence[str], named: str
) -> dict[str, Any]:
    """What gloo listens on: its name, and why."""
    known = {each["name"]: each for each in usable(interfaces)}
    if named:
        missing = [name for name in named.split(",") if name not in known]
        return {"name": named, "why": "GLOO_SOCKET_IFNAME says so", "missing": missing}
    for address in host_addresses:
        for each in usable(interfaces):
            if address in each["addresses"]:
                return {"name": each["name"], "why": f"the host's name leads to {address}", "missing": []}
    loopback = next((each["name"] for each in interfaces if each["loopback"]), None)
    return {"name": loopback, "why": "the host's name leads to no address of an interface", "missing": []}


def pick_for_nccl(interfaces: Sequence[Mapping[str, Any]], named: str) -> dict[str, Any]:
    """What NCCL uses for sockets: its names, and why."""
    names = [each["name"] for each in usable(interfaces)]
    if named:
        excluded, exact = named.startswith("^"), named.lstrip("^").startswith("=")
        wanted = named.lstrip("^").lstrip("=").split(",")

        def matches(name: str) -> bool:
            return any(name == want if exact else name.startswith(want) for want in wanted if want)

        picked = [name for name in names if matches(name) != excluded]
        missing = (
            [] if excluded else [want for want in wanted if not any(name.startswith(want) for name in names)]
        )
        return {"names": picked, "why": "NCCL_SOCKET_IFNAME says so", "missing": missing}
    by_preference = (
        [name for name in names if name.startswith("ib")],
        [name for name in names if not name.startswith(("ib", "lo", "docker"))],
        [name for name in names if name.startswith("docker")],
        [name for name in names if name.startswith("lo")],
    )
    return {
        "names": next(filter(None, by_preference), []),
        "why": "it prefers interfaces named ib*, and takes docker* and lo last",
        "missing": [],
    }


def _find_master(environment: Mapping[str, str], timeout_s: float) -> dict[str, Any] | None:
    """Whether the job's store answers; None where no launcher has named one."""
    if not environment.get("MASTER_ADDR") and not environment.get("MASTER_PORT"):
        return None
    try:
        address = find_address(environment, rank=None)
    except ValueError as error:
        named = [environment.get(name) or "?" for name in ("MASTER_ADDR", "MASTER_PORT")]
        return {"address": ":".join(named), "kind": "unset", "reason": str(error)}
    try:
        reach_store(address, time.monotonic() + timeout_s)
    except StoreUnreachable as error:
        return {"address": str(address), "kind": error.kind, "reason": error.reason}
    return {"address": str(address), "kind": "store", "reason": ""}


def _resolve(host: str) -> list[str]:
    with contextlib.suppress(OSError, UnicodeError):
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        return list(dict.fromkeys(str(place[0]).split("%")[0] for *_, place in found))
    return []


def _find_ipv4(name: str) -> str | None:
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        answer = fcntl.ioctl(probe.fileno(), _GET_ADDRESS, struct.pack("256s", name.encode()[:15]))
        return socket.inet_ntoa(answer[20:24])
    return None


def _find_ipv6(root: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in _read(root / "proc/net/if_inet6").splitlines():
        parts = line.split()
        if len(parts) == 6:
            found.setdefault(parts[5], []).append(str(ipaddress.IPv6Address(int(parts[0], 16))))
    return found


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""
