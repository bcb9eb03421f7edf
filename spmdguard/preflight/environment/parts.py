"""One piece of advice, and what several kinds of it ask of the facts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Advice", "format_size", "num_local_ranks"]


@dataclass(frozen=True)
class Advice:
    """One thing to know.

    Attributes:
        level: ``problem``: the job will fail or hang; ``cost``: it will be slow; ``hint``: better so.
        topic: what it is about, a word.
        text: what is so.
        why: what follows from it.
        export: the line that mends it, or empty.
    """

    level: str
    topic: str
    text: str
    why: str
    export: str = ""


def num_local_ranks(facts: Mapping[str, Any]) -> int:
    """Ranks on this host: as the launcher says, else one for each GPU, else one."""
    gpus = facts.get("gpus") or {}
    return int(facts["launch"].get("local_world_size") or len(gpus.get("devices", ())) or 1)


def format_size(num_bytes: int) -> str:
    """``"1.5 GiB"``."""
    for unit, size in (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if num_bytes >= size:
            return f"{num_bytes / size:.3g} {unit}"
    return f"{num_bytes} bytes"
