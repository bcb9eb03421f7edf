"""Reach the job's store, or say in the words of a launch why it cannot be reached."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass, replace

from spmdguard.errors import StoreUnreachable
from spmdguard.group.store import JobStore, StoreAddress, connect, is_local_address
from spmdguard.launch.faults import Fault
from spmdguard.launch.identity import Identity, read_identity
from spmdguard.launch.neighbours import Neighbour, describe_listener, find_strays, read_neighbour

__all__ = ["Reached", "explain_unreachable", "reach"]

_HOLDER = "launch/holder"
_HOLDER_WAIT_S = 0.5
_TAKEN_WAIT_S = 3.0
_STRAYS_S = 2.0
_FOR_EVER_S = float("inf")


@dataclass(frozen=True)
class Reached:
    """The store, and this process with what it found on the way."""

    store: JobStore
    me: Identity
    held_here: bool

    def find_holder(self) -> Identity | None:
        """The process that holds the store, where it takes part in handshakes."""
        with contextlib.suppress(ValueError):
            if self.store.poll([_HOLDER], _HOLDER_WAIT_S):
                return read_identity((self.store.get_texts([_HOLDER]) or [b""])[0])
        return None


def reach(me: Identity, address: StoreAddress, deadline_s: float, resolve_s: float) -> Reached:
    """Hold or reach the store before ``deadline_s``; a taken port is joined, so that all on it hear of the fault."""
    first_s = _STRAYS_S if _find_stray_holder(me, address) else _FOR_EVER_S
    try:
        store = connect(address, min(first_s, deadline_s - time.monotonic()), resolve_timeout_s=resolve_s)
    except StoreUnreachable as error:
        if error.kind != "taken":
            raise
        return _join_holder(me, address)
    if address.held_here:
        store.set_text(_HOLDER, me.to_json())
    return Reached(store, me, address.held_here)


def _join_holder(me: Identity, address: StoreAddress) -> Reached:
    client = address._replace(held_here=False)
    reached = Reached(connect(client, _TAKEN_WAIT_S), me, False)
    holder = reached.find_holder()
    same_job = holder is not None and (holder.job, holder.script_hash) == (me.job, me.script_hash)
    if same_job and not reached.store.has("launch/0/1/verdict"):
        return reached  # still in its handshake: its judge will name both as the same rank
    who = holder.describe() if holder is not None else describe_listener(address.port) or "another process"
    line = Fault("port-taken", f"MASTER_PORT {address.port} is taken by {who}").to_line()
    return replace(reached, me=replace(me, faults=(*me.faults, line)))


def explain_unreachable(me: Identity, address: StoreAddress, error: StoreUnreachable) -> Fault:
    """The fault behind an unreachable store, as seen by one process."""
    if error.kind == "unresolvable":
        title = f"MASTER_ADDR {address.host!r} cannot be resolved"
        return Fault("address-unresolvable", title, f"{me.describe()}: {error.reason}")
    if error.kind == "elsewhere":
        title = f"rank 0 runs on host {me.host}, but MASTER_ADDR {address.host!r} is no address of this host"
        return Fault("address-elsewhere", title, me.describe())
    listener = describe_listener(address.port) if is_local_address(address.host) else ""
    if error.kind in ("taken", "foreign", "silent", "closed") and (listener or error.kind != "silent"):
        who = listener or "a service that is no store"
        return Fault(
            "port-taken", f"MASTER_PORT {address.port} is taken by {who}", f"{me.describe()}: {error.reason}"
        )
    stray = _find_stray_holder(me, address)
    saw = f"{me.describe()}: {error.reason}"
    if stray is not None:
        title = f"rank 0 ({stray.describe()}) has MASTER_ADDR:MASTER_PORT {stray.address}"
        return Fault("port-differs", f"{title}, this process has {address}", saw)
    if address.held_here:
        return Fault("store-unreachable", f"rank 0 cannot hold the store at {address}", saw)
    holder = "rank 0 did not come: it" if me.launcher != "torchrun" else "torchrun's agent"
    return Fault("store-unreachable", f"{holder} should hold the store at {address}", saw)


def _find_stray_holder(me: Identity, address: StoreAddress) -> Neighbour | None:
    """Rank 0 of this launch, where it is known to hold the store at another address."""
    if address.held_here:
        return None
    neighbours = [other for other in map(read_neighbour, me.beside) if other is not None]
    return next(iter(find_strays(str(address), me.world_size, (0,), neighbours)), None)
