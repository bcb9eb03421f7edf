"""``init_process_group`` with everything that names a wrong start: handshake, timeouts, a verified collective."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Collection
from datetime import timedelta
from typing import Any

from spmdguard.current import simulated_values
from spmdguard.errors import LaunchFailed
from spmdguard.format import escape_text, name_ranks
from spmdguard.group.timeouts import set_timeout, step_timeout
from spmdguard.group.world import world
from spmdguard.launch.faults import Fault
from spmdguard.launch.handshake import DEVICES_VARIABLE, Launched, handshake
from spmdguard.launch.identity import Identity
from spmdguard.launch.late import late_comers

__all__ = ["first_step_done", "init_process_group"]


def init_process_group(
    backend: str | None = None,
    *,
    timeout: float | timedelta = 600.0,
    first_step_timeout: float | timedelta = 1800.0,
    handshake_timeout: float | timedelta = 300.0,
    allow: Collection[str] = (),
    num_devices: int | None = None,
    **options: Any,
) -> Launched:
    """Meet all ranks, make the default process group over the same store, and prove that it works.

    Every process prints one line on stderr that says which rank it is, where, and on which device. Collectives may
    take ``first_step_timeout`` until the first step is done, which ``sync_should_stop`` or ``first_step_done``
    tells, and ``timeout`` afterwards. Where the group cannot move CPU tensors, its gloo side group is made here.

    SPMD:
        Collective: the handshake over the store, then one gather of one number on the default group.
        Called by: every rank, once, in place of ``torch.distributed.init_process_group``.
        Result: rank-varying: this process's identity.
        Raises on: every rank, where the launch is wrong.

    Args:
        backend: as in torch; None lets torch choose.
        timeout: seconds that a collective may take after the first step.
        first_step_timeout: the same until the first step is done.
        handshake_timeout: seconds until a rank that has not come is called missing.
        allow: what may differ between ranks, as in ``handshake``.
        num_devices: the number of devices that local ranks are bound to, as in ``handshake``.
        options: further arguments of torch's function, such as ``device_id``.

    Raises:
        LaunchFailed: the launch is wrong, or the group gives wrong results.
    """
    timeout_s, first_s, meeting_s = (
        _seconds(each) for each in (timeout, first_step_timeout, handshake_timeout)
    )
    forbidden = {"store", "rank", "world_size", "init_method"} & set(options)
    if forbidden:
        raise ValueError(f"{sorted(forbidden)} come from the launcher's environment and cannot be given")
    if backend == "gloo" and num_devices is None and DEVICES_VARIABLE not in os.environ:
        allow = {*allow, "devices"}  # ranks of a CPU job are bound to no device
    launched = handshake(meeting_s, allow=allow, num_devices=num_devices)
    from spmdguard.group.starting import find_wrong_ranks, start_group

    me = launched.identity
    started_s = time.monotonic()
    store = None if launched.store is None else launched.store.raw()
    size = launched.world_size if simulated_values() is None else 0
    prefix = f"spmdguard/group/{me.restart}/{launched.number}"
    start_group(backend, store, prefix, me.rank or 0, size, min(first_s, meeting_s), **options)
    wrong, device = find_wrong_ranks(world().local_rank())
    if wrong:
        raise _wrong_sum(wrong, me, time.monotonic() - started_s)
    world().channel()
    set_timeout(first_s)
    late = late_comers(launched)
    step_timeout().arm(timeout_s, late.tell)
    if simulated_values() is None:
        _print_identity(launched, device)
        late.tell()
    return launched


def first_step_done() -> None:
    """The first step is done: from now on collectives get the short timeout of ``init_process_group``.

    ``sync_should_stop`` does this by itself on its first call; without it, call this at the end of the first step.

    SPMD:
        Rank-local: no communication.
        Called by: every rank, at the same point of the program.
        Result: none.
        Raises on: no rank.
    """
    step_timeout().step_done()


def _seconds(timeout: float | timedelta) -> float:
    seconds = timeout.total_seconds() if isinstance(timeout, timedelta) else float(timeout)
    if not seconds > 0:
        raise ValueError(f"a timeout is {timeout!r}, expected more than 0 seconds")
    return seconds


def _wrong_sum(wrong: list[int], me: Identity, elapsed_s: float) -> LaunchFailed:
    fault = Fault(
        "wrong-sum", f"the first collective gave wrong values from {name_ranks(wrong)}", me.describe()
    )
    return LaunchFailed(
        faults=[(fault.code, fault.title, fault.saw, fault.advice)],
        process=me.describe(),
        elapsed_s=elapsed_s,
    )


def describe_rank(me: Identity, world_size: int, device: str = "") -> str:
    """``"rank 3 of 8, local rank 1 of 4, host a, process 4242, device cuda:1"``."""
    local = "" if me.local_rank is None else f", local rank {me.local_rank}"
    if local and me.local_world_size:
        local += f" of {me.local_world_size}"
    place = f"host {escape_text(me.host)}, process {me.pid}{f', device {device}' if device else ''}"
    return f"rank {me.rank or 0} of {world_size}{local}, {place}"


def _print_identity(launched: Launched, device: str) -> None:
    lines = [describe_rank(launched.identity, launched.world_size, device)]
    if (launched.identity.rank or 0) == 0:
        lines += launched.notes
    sys.stderr.write("".join(f"spmdguard: {line}\n" for line in lines))
    sys.stderr.flush()
