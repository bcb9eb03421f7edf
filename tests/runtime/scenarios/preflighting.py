"""`spmdguard preflight` on ranks of two pretended hosts, where something is really wrong with one of them."""

from __future__ import annotations

import os
import time
from typing import Any


def run(fault: str, rank: int = -1, shared: str = "", argv: tuple[str, ...] = ()) -> None:
    """Run the command; on ``rank`` the fault is put in first."""
    me = int(os.environ["RANK"])
    os.environ.update(SPMDGUARD_HOST="abc"[me // 2], LOCAL_RANK=str(me % 2), LOCAL_WORLD_SIZE="2")
    arguments = ["--json", "--message-mib", "0.25", "--memory-mib", "4", "--timeout", "20", *argv]
    if shared:
        arguments += ["--folder", f"{shared}/{'own' if me == rank and fault == 'folder' else 'shared'}"]
    if me == rank or (fault == "host" and me // 2 == 1):
        FAULTS[fault]()
    from spmdguard.preflight.links import preflight_command

    raise SystemExit(preflight_command(arguments))


def slow_link() -> None:
    import torch.distributed as dist

    send = dist.send

    def slow(*args: Any, **kwargs: Any) -> Any:
        time.sleep(0.05)
        return send(*args, **kwargs)

    dist.send = slow


def slow_host() -> None:
    """Only what leaves the host is slow."""
    import torch.distributed as dist

    send = dist.send

    def slow(tensor: Any, dst: int, **kwargs: Any) -> Any:
        if dst // 2 != dist.get_rank() // 2:
            time.sleep(0.05)
        return send(tensor, dst, **kwargs)

    dist.send = slow


def wrong_values() -> None:
    from spmdguard.preflight.links import probes

    right = probes.pattern

    def pattern(rank: int, num_elements: int, device: Any) -> Any:
        values = right(rank, num_elements, device)
        if rank == int(os.environ["RANK"]):
            values[-1] += 1  # one element of what this rank contributes
        return values

    probes.pattern = pattern


def slow_compute() -> None:
    from spmdguard.preflight.links import probes

    timed = probes._time
    probes._time = lambda device, run: timed(device, lambda: (time.sleep(0.05), run()))


def wrong_clock() -> None:
    from spmdguard.preflight.links import probes

    class Clock:
        perf_counter = staticmethod(time.perf_counter)
        time = staticmethod(lambda: time.time() + 7)

    probes.time = Clock  # type: ignore[misc,assignment]  # a clock that is ahead


def hang() -> None:
    from spmdguard.preflight.links import probes

    def never(*_: Any) -> None:
        time.sleep(12)
        os._exit(3)

    probes.probe_pair = never


def nothing() -> None:
    return


FAULTS = {
    "none": nothing,
    "slow": slow_link,
    "host": slow_host,
    "wrong": wrong_values,
    "compute": slow_compute,
    "clock": wrong_clock,
    "folder": nothing,
    "hang": hang,
}
