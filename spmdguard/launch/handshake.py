"""The handshake before the first collective: all processes say who they are, one judges, all hear the verdict.

Protocol, over the job's own store, per process: one counted add (its ordinal), one set (its identity), one wait and
one get (the verdict). The process with ordinal 1 judges; it reads the records in batches as they come. So it needs no
particular rank to be alive, and the store sees four requests a process: linear in their number.

A verdict is given at once where something is wrong that more arrivals cannot mend, after a short time in which the
others may come and be named too; else as soon as every rank has come; else at the deadline, when ranks are missing.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import timedelta

from spmdguard.current import PerProcess, simulated_values
from spmdguard.errors import LaunchFailed, StoreUnreachable
from spmdguard.group.bounded import DidNotReturn, call_bounded
from spmdguard.group.store import JobStore, find_address, load_torch_store
from spmdguard.group.torch_access import default_group
from spmdguard.launch.checks import check_identity
from spmdguard.launch.faults import ALLOWED_TO_DIFFER, Fault, read_line
from spmdguard.launch.identity import Identity, find_identity
from spmdguard.launch.meeting_point import Reached, explain_unreachable, reach
from spmdguard.launch.neighbours import find_neighbours, read_parent_environment
from spmdguard.launch.verdicts import Judge, Verdict, find_processes, hear_verdict, publish

__all__ = ["Launched", "handshake"]

ALLOW_VARIABLE = "SPMDGUARD_ALLOW"
DEVICES_VARIABLE = "SPMDGUARD_NUM_DEVICES"
_MARGIN_S = 10.0
_LINGER_S = 1.0
_K8S_VARIABLE = "KUBERNETES_SERVICE_HOST"
_RESOLVE_S = 1.0


@dataclass(frozen=True)
class Launched:
    """A launch that was found right.

    SPMD:
        Rank-local: plain data.
        Called by: no one.
        Result: rank-varying.
        Raises on: no rank.

    Attributes:
        identity: this process.
        world_size: the number of ranks; 1 without a launcher.
        notes: what differs between ranks but stops nobody.
        elapsed_s: how long the handshake took.
        store: the connection to the job's store; None without a launcher.
        number: how many handshakes this process has begun.
    """

    identity: Identity
    world_size: int
    notes: tuple[str, ...]
    elapsed_s: float
    store: JobStore | None
    number: int

    def find_processes(self, ranks: Collection[int], timeout_s: float) -> list[Identity]:
        """Who these ranks are, from the records of the handshake; of those that are found in time."""
        if self.store is None:
            return []
        return find_processes(
            self.store.under("launch", self.identity.restart, self.number),
            ranks,
            time.monotonic() + timeout_s,
        )


class _Count:
    """How many handshakes this process has begun: each has keys of its own."""

    num_begun = 0
    last: Launched | None = None


_count: PerProcess[_Count] = PerProcess(_Count)


def handshake(
    timeout: float | timedelta = 300.0, *, allow: Collection[str] = (), num_devices: int | None = None
) -> Launched:
    """Meet all processes of the job and find out whether they were launched right, before any collective.

    SPMD:
        Collective: over the rendezvous store; needs no process group.
        Called by: every rank, equally often, before ``init_process_group``.
        Result: rank-varying: this process's identity.
        Raises on: every rank that came, where anything is wrong.

    Args:
        timeout: seconds until a rank that has not come is called missing.
        allow: what may differ between ranks: ``versions``, ``script``, ``arguments``, ``environment``; and
            ``devices``: local ranks beyond the visible devices. ``SPMDGUARD_ALLOW`` adds to it, separated by commas.
        num_devices: the number of devices that local ranks are bound to; the visible CUDA devices without it.

    Raises:
        LaunchFailed: what is wrong, with host and process of each that is concerned.
    """
    timeout_s = timeout.total_seconds() if isinstance(timeout, timedelta) else float(timeout)
    if not timeout_s > 0:
        raise ValueError(f"timeout is {timeout!r}, expected more than 0 seconds")
    allowed = {*allow, *filter(None, os.environ.get(ALLOW_VARIABLE, "").split(","))}
    unknown = allowed - {*ALLOWED_TO_DIFFER, "devices"}
    if unknown:
        raise ValueError(f"allow holds {sorted(unknown)}, expected some of {[*ALLOWED_TO_DIFFER, 'devices']}")
    me = find_identity()
    if simulated_values() is not None or me.launcher == "none":
        return Launched(me, 1, (), 0.0, None, 0)
    load_torch_store()
    started_s = time.monotonic()
    me = _examine(me, allowed, num_devices)
    count = _count()
    count.num_begun += 1
    meeting = _Meeting(me, allowed, timeout_s, started_s, count.num_begun)
    try:
        launched: Launched = call_bounded(meeting.hold, timeout_s + _MARGIN_S, "handshake")
    except LaunchFailed as wrong:
        raise wrong.with_traceback(None) from None  # frames of ours say nothing about the launch
    except DidNotReturn:
        fault = Fault("no-verdict", f"the store at {me.address} stopped answering", me.describe())
        raise meeting.failure([fault]) from None
    if default_group() is None:
        count.last = launched
    return launched


def last_launch() -> Launched | None:
    """The last handshake that this process held before it had a process group; None without one."""
    return _count().last


def _examine(me: Identity, allowed: Collection[str], num_devices: int | None) -> Identity:
    """This process's identity with what it finds wrong with itself and whom it sees beside it."""
    if "devices" not in allowed:
        me = replace(me, devices=_count_devices() if num_devices is None else num_devices)
    faults = check_identity(me, os.environ, read_parent_environment)
    beside = tuple(each.to_text() for each in find_neighbours(me.script, me.host))
    return replace(me, faults=tuple(fault.to_line() for fault in faults), beside=beside)


def _count_devices() -> int | None:
    named = os.environ.get(DEVICES_VARIABLE, "")
    if named.isdecimal():
        return int(named)
    from spmdguard.group.devices import count_devices

    return count_devices()


class _Meeting:
    """One handshake of this process."""

    def __init__(
        self, me: Identity, allowed: Collection[str], timeout_s: float, started_s: float, number: int
    ) -> None:
        self.me = me
        self.allowed = allowed
        self.timeout_s = timeout_s
        self.started_s = started_s
        self.deadline_s = started_s + timeout_s
        self.number = number

    def hold(self) -> Launched:
        """Reach the store, say who this is, judge or hear the verdict."""
        reached = self._reach()
        self.me = reached.me
        store = reached.store.under("launch", self.me.restart, self.number)
        ordinal = publish(store, self.me)
        try:
            verdict = self._find_verdict(store, ordinal)
        except (RuntimeError, OSError) as error:
            title = f"the process that holds the store at {self.me.address} ended during the handshake"
            raise self.failure([Fault("no-verdict", title, str(error).splitlines()[0][:200])]) from error
        faults = [*verdict.faults]
        if not faults and ordinal > verdict.num_arrived:
            faults = [self._tell_late(store, reached)]
        if faults:
            self._linger(store, reached)
            raise self.failure(faults)
        return Launched(
            identity=self.me,
            world_size=self.me.world_size or 1,
            notes=verdict.notes,
            elapsed_s=time.monotonic() - self.started_s,
            store=reached.store,
            number=self.number,
        )

    def failure(self, faults: Collection[Fault]) -> LaunchFailed:
        """The error of this process; its own faults first."""
        own = {read_line(line).code: read_line(line).title for line in self.me.faults}
        mine = [replace(fault, title=own[fault.code]) for fault in faults if fault.code in own]
        others = [fault for fault in faults if fault.code not in own]
        return LaunchFailed(
            faults=[(fault.code, fault.title, fault.saw, fault.advice) for fault in (*mine, *others)],
            process=self.me.describe(),
            elapsed_s=time.monotonic() - self.started_s,
        )

    def _reach(self) -> Reached:
        resolve_s = self.timeout_s if os.environ.get(_K8S_VARIABLE) else min(self.timeout_s, _RESOLVE_S)
        try:
            address = find_address(rank=self.me.rank)
        except ValueError as error:
            line = Fault("bad-variable", str(error)).to_line()
            self.me = replace(self.me, faults=(*self.me.faults, line))
            raise self._own_failure([]) from None
        try:
            return reach(self.me, address, self.deadline_s, resolve_s)
        except StoreUnreachable as error:
            raise self._own_failure([explain_unreachable(self.me, address, error)]) from error

    def _own_failure(self, faults: list[Fault]) -> LaunchFailed:
        return self.failure(
            [*(replace(read_line(line), saw=self.me.describe()) for line in self.me.faults), *faults]
        )

    def _find_verdict(self, store: JobStore, ordinal: int) -> Verdict:
        judge = Judge(store, self.allowed, self.timeout_s, self.deadline_s)
        if ordinal == 1:
            verdict = judge.judge()
        else:
            verdict = hear_verdict(store, judge, self.me)
        store.add("heard")
        return verdict

    def _tell_late(self, store: JobStore, reached: Reached) -> Fault:
        number = store.add("late")
        store.set_text(f"late/{number}", self.me.to_json())
        holder = reached.find_holder()
        title = f"{self.me.describe()} came after all {self.me.world_size} ranks of the job had met"
        return Fault(
            "surplus-process", title, f"the job runs: {holder.describe()} holds its store" if holder else ""
        )

    def _linger(self, store: JobStore, reached: Reached) -> None:
        """The process that holds the store stays until the others have heard why the launch failed."""
        if not reached.held_here:
            return
        until_s = time.monotonic() + _LINGER_S
        while time.monotonic() < until_s and store.add("heard", 0) < store.add("arrived", 0):
            time.sleep(0.02)
