"""All facts of this host in one JSON object, and how two of them differ."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spmdguard.format import escape_text
from spmdguard.launch.identity import find_identity, select_environment
from spmdguard.launch.variables import COSTLY, RENAMED
from spmdguard.preflight.environment.gpus import find_gpus
from spmdguard.preflight.environment.machine import find_machine
from spmdguard.preflight.environment.network import find_network

__all__ = ["compare_facts", "find_facts", "read_facts"]

FORMAT = 1
_MAX_BYTES = 2**20
_ALSO = ("OMP_NUM_THREADS", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_USE_AGENT_STORE", *COSTLY, *RENAMED)
_OF_ONE_RANK = ("RANK", "LOCAL_RANK")
_GRAVE = ("versions", "gpus")


def find_facts(
    environment: Mapping[str, str] | None = None, *, root: Path = Path("/"), reach_timeout_s: float = 0.5
) -> dict[str, Any]:
    """What this host is like; nothing here needs torch, and nothing is changed."""
    env = os.environ if environment is None else environment
    me = find_identity(env)
    variables = {**select_environment(env), **{name: env[name] for name in _ALSO if name in env}}
    return {
        "format": FORMAT,
        "host": me.host,
        "launch": {
            "launcher": me.launcher,
            "rank": me.rank,
            "world_size": me.world_size,
            "local_world_size": me.local_world_size,
        },
        "versions": dict(me.versions),
        "machine": find_machine(root),
        "network": find_network(root, env, reach_timeout_s),
        "gpus": find_gpus(),
        "variables": dict(sorted(variables.items())),
    }


def read_facts(path: Path) -> dict[str, Any]:
    """Facts that were saved.

    Raises:
        ValueError: the file is too large, or holds no facts.
    """
    if path.stat().st_size > _MAX_BYTES:
        raise ValueError(f"{path} is larger than {_MAX_BYTES} bytes")
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is no JSON ({type(error).__name__})") from None
    known = isinstance(data, dict) and data.get("format") == FORMAT
    if not known or not all(
        isinstance(data.get(name), dict) for name in ("versions", "variables", "machine")
    ):
        raise ValueError(f"{path} was not written by `spmdguard env --save` of this version")
    return dict(data)


def compare_facts(baseline: Mapping[str, Any], now: Mapping[str, Any]) -> list[tuple[bool, str]]:
    """Differences, as (whether ranks that differ so should not run together, one line)."""
    found = []
    pairs = {
        "versions": (baseline["versions"], now["versions"]),
        "gpus": (_describe_gpus(baseline), _describe_gpus(now)),
        "machine": (_describe_machine(baseline), _describe_machine(now)),
        "variables": (baseline["variables"], now["variables"]),
    }
    for topic, (before, after) in pairs.items():
        for name in sorted({*before, *after} - set(_OF_ONE_RANK)):
            one, other = before.get(name), after.get(name)
            if one != other:
                line = f"{topic}: {escape_text(str(name), 60)} was {_show(one)}, is {_show(other)}"
                found.append((topic in _GRAVE, line))
    return found


def _describe_gpus(facts: Mapping[str, Any]) -> dict[str, Any]:
    gpus = facts.get("gpus") or {}
    devices = gpus.get("devices") or []
    if not isinstance(devices, list) or not all(isinstance(each, dict) for each in devices):
        raise ValueError("the GPUs of the baseline have another form than expected")
    described: dict[str, Any] = {f"GPU {i}": each.get("name") for i, each in enumerate(devices)}
    return {**described, **({"links": gpus.get("links")} if devices else {})}


def _describe_machine(facts: Mapping[str, Any]) -> dict[str, Any]:
    machine = dict(facts["machine"])
    shared = machine.pop("shared_memory", None)
    return {**machine, "shared_memory": shared.get("size") if isinstance(shared, dict) else None}


def _show(value: Any) -> str:
    return "not there" if value is None else escape_text(str(value), 120)
