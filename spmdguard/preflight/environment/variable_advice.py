"""Variables that are renamed, contradictory, without effect or costly; the tables are data."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from spmdguard.format import escape_text
from spmdguard.launch.variables import ALLOWED_VALUES, CONTRADICTIONS, COSTLY, NEEDS, RENAMED
from spmdguard.preflight.environment.parts import Advice, num_local_ranks

__all__ = ["about_threads", "about_variables"]

_OFF = ("", "0", "false", "False", "off", "OFF", "NONE", "VERSION")
_TOPIC = "variables"


def about_variables(facts: Mapping[str, Any]) -> Iterator[Advice]:
    """Everything about the values of variables."""
    values: Mapping[str, str] = facts["variables"]
    yield from _renamed(values)
    for name, allowed in ALLOWED_VALUES.items():
        if name in values and values[name] not in allowed:
            text = f"{name} is {escape_text(repr(values[name]), 40)}"
            yield Advice("problem", _TOPIC, text, f"it can be {', '.join(allowed)}", f"unset {name}")
    for name, needed in NEEDS.items():
        if name in values and values.get(needed, "") in _OFF:
            text = f"{name} has no effect without {needed}"
            yield Advice("hint", _TOPIC, text, "it is ignored", f"unset {name}")
    for one, bad, other, why in CONTRADICTIONS:
        if other in values and one in values and (not bad or values[one] in bad):
            text = (
                f"{one}={escape_text(values[one], 40)} contradicts {other}={escape_text(values[other], 40)}"
            )
            yield Advice("problem", _TOPIC, text, why, f"unset {other}")
    for name, cost in COSTLY.items():
        value = values.get(name, "")
        if value not in _OFF and (not cost.values or value in cost.values):
            yield Advice("cost", _TOPIC, f"{name}={escape_text(value, 40)}", cost.price, f"unset {name}")
    if facts.get("gpus") and "TORCH_NCCL_DUMP_ON_TIMEOUT" not in values:
        yield Advice(
            "hint",
            _TOPIC,
            "a timeout of NCCL leaves no record of what each rank was doing",
            "the flight recorder writes one; it costs next to nothing",
            "export TORCH_NCCL_DUMP_ON_TIMEOUT=1 TORCH_FR_BUFFER_SIZE=2000 TORCH_NCCL_TRACE_BUFFER_SIZE=2000",
        )


def _renamed(values: Mapping[str, str]) -> Iterator[Advice]:
    for old, new in RENAMED.items():
        if old not in values:
            continue
        costly = COSTLY.get(new)
        if costly is not None and not costly.values and values[old] not in _OFF:
            text = f"{old}={escape_text(values[old], 40)} (now {new})"
            yield Advice("cost", _TOPIC, text, costly.price, f"unset {old}")
        elif new in values:
            yield Advice(
                "hint",
                _TOPIC,
                f"{old} was renamed to {new}, and both are set",
                "only one counts",
                f"unset {old}",
            )
        else:
            export = f"export {new}={shlex.quote(escape_text(values[old], 40))}; unset {old}"
            why = "newer versions may ignore it"
            yield Advice("hint", _TOPIC, f"{old} was renamed to {new}", why, export)


def about_threads(facts: Mapping[str, Any]) -> Iterator[Advice]:
    ranks, cpus = num_local_ranks(facts), facts["machine"]["cpus"] or 1
    threads = facts["variables"].get("OMP_NUM_THREADS", "")
    share = max(1, cpus // ranks)
    if threads.isdecimal() and int(threads) * ranks > cpus:
        yield Advice(
            "cost",
            "variables",
            f"{ranks} rank{'' if ranks == 1 else 's'} with OMP_NUM_THREADS={threads} on {cpus} processors",
            "more threads than processors take turns",
            f"export OMP_NUM_THREADS={share}",
        )
    elif not threads and ranks > 1:
        yield Advice(
            "hint",
            "variables",
            "OMP_NUM_THREADS is not set",
            f"without it each of {ranks} ranks starts {cpus} threads (torchrun sets 1)",
            f"export OMP_NUM_THREADS={share}",
        )
