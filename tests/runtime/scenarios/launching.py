"""Ranks that are launched wrongly: each takes its own environment from a list, and says what it was told."""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

stay_s = 0.3


def take_environment(environments: list[dict[str, Any]]) -> None:
    """Become the process that entry number ``RANK`` describes; None removes a variable."""
    mine = dict(environments[int(os.environ["RANK"])])
    sys.argv = ["train.py", *mine.pop("argv", [])]
    sys.modules["__main__"].__file__ = mine.pop("script", __file__)
    sys.path[:0] = mine.pop("path", [])
    after = mine.pop("after", None)
    global stay_s
    stay_s = mine.pop("stay_s", stay_s)
    for name, value in mine.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value.replace("PORT", os.environ["MASTER_PORT"])
    if after is not None:
        wait_for(after)


def wait_for(what: int | str) -> None:
    """Wait until so many processes have come to the first handshake, or until its store has that key."""
    from spmdguard.group.store import connect, find_address

    store = connect(find_address(rank=1), 20).under("launch", 0, 1)
    if isinstance(what, str):
        assert store.poll([what], 20)
        return
    until_s = time.monotonic() + 20
    while store.add("arrived", 0) < what:
        assert time.monotonic() < until_s, f"{what} processes have not come"
        time.sleep(0.01)


def meet(environments: list[dict[str, Any]], timeout: float, times: int = 1, **options: Any) -> None:
    """Shake hands, and print what came of it as JSON."""
    take_environment(environments)
    from spmdguard import LaunchFailed, handshake

    try:
        for _ in range(times):
            launched = handshake(timeout, **options)
    except LaunchFailed as error:
        report(codes=error.codes, text=str(error), pid=os.getpid(), elapsed_s=error.elapsed_s)
        sys.exit(1)
    report(codes=[], notes=launched.notes, size=launched.world_size, pid=os.getpid())
    time.sleep(stay_s)  # who holds the store stays until the others have read the verdict


def find(environments: list[dict[str, Any]], wanted: list[int]) -> None:
    """Shake hands, then say who the ranks are that are wanted."""
    take_environment(environments)
    from spmdguard import handshake
    from spmdguard.group.world import TorchWorld
    from spmdguard.watch.joining import find_meeting

    handshake(60.0)
    meeting = find_meeting(TorchWorld())
    assert meeting is not None
    found = sorted((each.rank, each.host, each.pid, each.state) for each in meeting.find_processes(wanted))
    report(found=found, pid=os.getpid())


def report(**data: Any) -> None:
    print(json.dumps(data), flush=True)


def hostile(environments: list[dict[str, Any]], timeout: float, kind: str) -> None:
    """The last rank writes rubbish into the store before it meets the others."""
    if int(os.environ["RANK"]) == len(environments) - 1:
        from spmdguard.group.store import connect, find_address

        store = connect(find_address(rank=1), 20).raw()
        prefix = "spmdguard/launch/0/1"
        if kind == "verdict":
            store.set(f"{prefix}/verdict", "[" * 50_000)
        elif kind == "fault":
            fault = {"code": "\x1b[2J", "title": "\x1b]0;x\x07\nok", "saw": "\u202e" * 1_000}
            store.set(
                f"{prefix}/verdict", json.dumps({"faults": [fault] * 100, "notes": [1], "num_arrived": 0})
            )
        else:
            number = store.add(f"{prefix}/arrived", 1)
            text = {"huge": "x" * 500_000, "nested": "[" * 50_000, "types": '{"host": [], "pid": "\x1b"}'}[
                kind
            ]
            store.set(f"{prefix}/id/{number}", text)
    meet(environments, timeout)


def start(timeouts: dict[str, float], times: int = 1) -> None:
    """Make the group, and say how long collectives may take before and after the first step; again and again."""
    import torch
    import torch.distributed as dist

    import spmdguard

    for _ in range(times):
        launched = spmdguard.init_process_group("gloo", **timeouts)
        group = dist.group.WORLD
        options = [group._get_backend(torch.device("cpu")).options._timeout.total_seconds()]
        spmdguard.sync_should_stop()
        options.append(group._get_backend(torch.device("cpu")).options._timeout.total_seconds())
        report(rank=dist.get_rank(), size=launched.world_size, seconds=options)
        dist.destroy_process_group()


def expire(timeouts: dict[str, float]) -> None:
    """After the first step rank 0 waits in a collective in which rank 1 never comes."""
    import torch
    import torch.distributed as dist

    import spmdguard

    spmdguard.init_process_group("gloo", **timeouts)
    spmdguard.first_step_done()
    if dist.get_rank() == 1:
        time.sleep(2)
        return
    try:
        dist.all_reduce(torch.ones(1))
    except RuntimeError as error:
        report(error=str(error))
        os._exit(0)


def come_late(environments: list[dict[str, Any]], timeout: float) -> None:
    """The last process comes when the others have met; they end their first step when it was refused."""
    import spmdguard

    is_last = int(os.environ["RANK"]) == len(environments) - 1
    take_environment(environments)
    if is_last:
        wait_for("verdict")
        meet([{}] * (int(os.environ["RANK"]) + 1), timeout)
    launched = spmdguard.init_process_group("gloo", handshake_timeout=timeout)
    assert launched.store is not None
    assert launched.store.under("launch", 0, 1).poll(["late/1"], timeout)
    spmdguard.sync_should_stop()
    report(rank=launched.identity.rank)
    os._exit(0)
