"""The facts and the advice as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from spmdguard.format import escape_text
from spmdguard.preflight.environment.parts import Advice, format_size

__all__ = ["render_report"]

_UNLIMITED = "unlimited"


def render_report(
    facts: Mapping[str, Any], advice: Sequence[Advice], differences: Sequence[str] | None = None
) -> str:
    """A page: facts by topic, then what follows from them, then the lines to export; None: without a baseline."""
    lines = [f"spmdguard env: host {escape_text(facts['host'])}", *_render_facts(facts)]
    if differences is not None:
        found = differences or ["no difference"]
        lines += ["", "against the baseline:", *(f"  {line}" for line in found)]
    for each in advice:
        lines += ["", f"{each.level}[{each.topic}]: {each.text}", f"  why:   {each.why}"]
        if each.export:
            lines.append(f"  do:    {each.export}")
    exports = [each.export for each in advice if each.export.startswith(("export ", "unset "))]
    if exports:
        title = "recommended for this machine, before the job starts:"
        lines += ["", title, *(f"  {line}" for line in dict.fromkeys(exports))]
    lines += ["", _summarise(advice)]
    return "\n".join(lines) + "\n"


def _summarise(advice: Sequence[Advice]) -> str:
    """``"1 problem (fails or hangs), 2 hints (better so)"``."""
    parts = []
    for level, meaning in (("problem", "will fail or hang"), ("cost", "slow"), ("hint", "better so")):
        number = sum(each.level == level for each in advice)
        if number:
            parts.append(f"{number} {level}{'' if number == 1 else 's'} ({meaning})")
    return ", ".join(parts) or "nothing to remark"


def _render_facts(facts: Mapping[str, Any]) -> Iterator[str]:
    machine, network = facts["machine"], facts["network"]
    yield _row("versions", ", ".join(f"{name} {version}" for name, version in facts["versions"].items()))
    launch = facts["launch"]
    if launch["launcher"] != "none":
        yield _row(
            "launcher", ", ".join(f"{name} {value}" for name, value in launch.items() if value is not None)
        )
    shared, limit = machine["shared_memory"], machine["memory_limit"]
    memory = f"{format_size(machine['memory'])} of memory" if machine["memory"] else "memory unknown"
    yield _row(
        "machine",
        f"{machine['cpus']} processors, {memory}{f', limited to {format_size(limit)}' if limit else ''}, "
        f"/dev/shm {format_size(shared['free']) + ' free of ' + format_size(shared['size']) if shared else 'missing'}",
    )
    files, locked = machine["open_files"], machine["locked_memory"]
    yield _row(
        "limits",
        f"{_UNLIMITED if files is None else files} open files, "
        f"{_UNLIMITED if locked is None else format_size(locked)} of locked memory",
    )
    for each in network["interfaces"]:
        state = "" if each["up"] else " (down)"
        if each["addresses"]:
            yield _row("interface", f"{escape_text(each['name'])}{state}: {', '.join(each['addresses'])}")
    gloo, nccl = network["gloo"], network["nccl"]
    yield _row("gloo", f"would use {escape_text(str(gloo['name']))}, because {gloo['why']}")
    names = escape_text(", ".join(nccl["names"])) or "no interface"
    yield _row(
        "NCCL", f"would use {names}, because {nccl['why']}{'' if facts.get('gpus') else ' (with a GPU)'}"
    )
    if network["master"]:
        master = network["master"]
        answer = "a store answers" if master["kind"] == "store" else escape_text(master["reason"])
        yield _row("store", f"{escape_text(master['address'])}: {answer}")
    yield from _render_gpus(facts.get("gpus"))
    for name, value in facts["variables"].items():
        yield _row("variable", f"{escape_text(name, 60)}={escape_text(value, 120)}")


def _render_gpus(gpus: Mapping[str, Any] | None) -> Iterator[str]:
    if not gpus:
        yield _row("GPUs", "none")
        return
    for device in gpus["devices"]:
        yield _row("GPU", f"{device['index']}: {escape_text(device['name'])}, {device['memory.total']} MiB")
    for title, name in (("links", "links"), ("reads", "peer_to_peer")):
        for row in gpus[name]:
            yield _row(title, escape_text(" ".join(f"{cell:>4}" for cell in row)))


def _row(label: str, text: str) -> str:
    return f"  {label:<10} {text}"
