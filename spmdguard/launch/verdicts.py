"""One process judges the launch, and the others hear its verdict through the store."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from spmdguard.format import escape_text
from spmdguard.group.store import JobStore
from spmdguard.launch.faults import MAX_FAULTS, Fault, read_fault
from spmdguard.launch.identity import Identity, read_identity
from spmdguard.launch.judging import Arrivals, find_faults, find_missing, find_notes

__all__ = ["Judge", "Verdict", "hear_verdict", "publish", "read_verdict"]

_SETTLE_S = 1.0
_NEIGHBOURS_S = 5.0
_STRAYS_S = 2.0
_LOOK_S = 0.02
_BATCH = 256  # records of at most 16 KiB: an answer of at most 4 MiB
_GRACE_S = 0.4
_VERDICT = "verdict"


@dataclass(frozen=True)
class Verdict:
    """What was found: no faults mean that the job may run."""

    faults: tuple[Fault, ...]
    notes: tuple[str, ...]
    num_arrived: int

    def to_data(self) -> dict[str, Any]:
        """For the store."""
        return {
            "faults": [fault.to_data() for fault in self.faults[:MAX_FAULTS]],
            "notes": [note[:1000] for note in self.notes[:MAX_FAULTS]],
            "num_arrived": self.num_arrived,
        }


def read_verdict(data: Any) -> Verdict:
    """The verdict that another process wrote; ``ValueError`` where it is none."""
    if not isinstance(data, dict):
        raise ValueError("the verdict is no object")
    faults, notes, num_arrived = (data.get(name) for name in ("faults", "notes", "num_arrived"))
    if not isinstance(faults, list) or not isinstance(notes, list) or type(num_arrived) is not int:
        raise ValueError("the verdict has another form than expected")
    texts = tuple(escape_text(note, 1000) for note in notes[:MAX_FAULTS] if isinstance(note, str))
    return Verdict(tuple(read_fault(fault) for fault in faults[:MAX_FAULTS]), texts, num_arrived)


def publish(store: JobStore, me: Identity) -> int:
    """Say who this process is; its ordinal: the process with ordinal 1 judges."""
    ordinal = store.add("arrived")
    store.set_text(f"id/{ordinal}", me.to_json())
    return ordinal


def hear_verdict(store: JobStore, judge: Judge, me: Identity) -> Verdict:
    """Wait for the verdict; where the one that was to judge is gone, one of those that wait judges instead."""
    left_s = judge.deadline_s - time.monotonic()
    if not store.wait([_VERDICT], max(left_s, 0.0) + _GRACE_S):
        if store.claim("second", me.describe_process()):
            return judge.judge()
        store.wait([_VERDICT], 2 * _GRACE_S)
    try:
        found = store.find(_VERDICT)
        if found is not None:
            return read_verdict(found)
        title, saw = "no process gave a verdict on the launch", me.describe()
    except ValueError as error:
        title, saw = "the verdict on the launch cannot be read", str(error)
    return Verdict((Fault("no-verdict", title, saw),), (), 0)


def find_processes(store: JobStore, ranks: Collection[int], deadline_s: float) -> list[Identity]:
    """The processes that claimed these ranks, one a rank, as far as they are found before the deadline."""
    wanted, found = set(ranks), []
    num_arrived = store.add("arrived", 0)
    for first in range(1, num_arrived + 1, _BATCH):
        if not wanted or time.monotonic() > deadline_s:
            break
        for text in _read_records(store, range(first, min(first + _BATCH, num_arrived + 1)))[0]:
            with contextlib.suppress(ValueError):
                process = read_identity(text)
                if process.rank in wanted:
                    wanted.discard(process.rank)
                    found.append(process)
    return found


def _read_records(store: JobStore, ordinals: Sequence[int]) -> tuple[list[bytes], list[int]]:
    """The records that are written, and the ordinals of those that are not."""
    left: list[int] = []
    texts = store.get_texts([f"id/{ordinal}" for ordinal in ordinals])
    if texts is None:
        left = [ordinal for ordinal in ordinals if not store.has(f"id/{ordinal}")]
        there = sorted(set(ordinals) - set(left))
        texts = store.get_texts([f"id/{ordinal}" for ordinal in there]) or []
    return texts, left


class Judge:
    """Reads the records of all processes as they come, and decides when enough is known."""

    def __init__(
        self, store: JobStore, allowed: Collection[str], timeout_s: float, deadline_s: float
    ) -> None:
        self.deadline_s = deadline_s
        self.arrivals = Arrivals()
        self._store = store
        self._allowed = allowed
        self._timeout_s = timeout_s
        self._num_arrived = 0
        self._unread: list[int] = []
        self._started_s = self._came_s = time.monotonic()
        self._complete_s: float | None = None
        self._suspect_s: float | None = None

    def judge(self) -> Verdict:
        """Wait until the verdict is clear, and write it for all."""
        while True:
            self._read_arrivals()
            verdict = self._decide(time.monotonic())
            if verdict is not None:
                self._store.set(_VERDICT, verdict.to_data())
                return verdict
            time.sleep(min(_LOOK_S, max(self.deadline_s - time.monotonic(), 0.001)))

    def _decide(self, now_s: float) -> Verdict | None:
        arrivals = self.arrivals
        if arrivals.is_suspect:
            faults = find_faults(arrivals, self._allowed)
            if faults:
                return self._settle(faults, now_s)
        if arrivals.is_complete:
            self._complete_s = self._complete_s or now_s
            waited_s = now_s - self._complete_s
            if waited_s > _NEIGHBOURS_S or not arrivals.awaited_neighbours(surplus=True):
                return Verdict((), tuple(find_notes(arrivals)), self._num_arrived)
        elif now_s - self._started_s > _STRAYS_S and arrivals.strays():
            return self._verdict(find_missing(arrivals, round(now_s - self._started_s, 1)))
        if now_s >= self.deadline_s:
            return self._verdict(find_missing(arrivals, self._timeout_s))
        return None

    def _settle(self, faults: list[Fault], now_s: float) -> Verdict | None:
        """Give others a short time to come, so that they are named and hear the verdict too."""
        self._suspect_s = self._suspect_s or now_s
        complete = self.arrivals.is_complete
        awaited = self.arrivals.awaited_neighbours(surplus=complete)
        quiet = not awaited and (complete or now_s - self._came_s > _SETTLE_S)
        if not (quiet or now_s - self._suspect_s > _NEIGHBOURS_S or now_s >= self.deadline_s):
            return None
        if len(self.arrivals.processes) >= self.arrivals.world_size or now_s >= self.deadline_s:
            elapsed_s = round(now_s - self.deadline_s + self._timeout_s, 1)
            faults = [*faults, *find_missing(self.arrivals, elapsed_s)]
        return self._verdict(faults)

    def _verdict(self, faults: list[Fault]) -> Verdict:
        return Verdict(tuple(faults), tuple(find_notes(self.arrivals)), self._num_arrived)

    def _read_arrivals(self) -> None:
        """Records that are there; a process that ended before it wrote its own does not hold the others up."""
        num_arrived = self._store.add("arrived", 0)
        self._unread += range(self._num_arrived + 1, num_arrived + 1)
        self._num_arrived = num_arrived
        left: list[int] = []
        for first in range(0, len(self._unread), _BATCH):
            left += self._read_batch(self._unread[first : first + _BATCH])
        self._unread = left

    def _read_batch(self, batch: list[int]) -> list[int]:
        texts, left = _read_records(self._store, batch)
        for text in texts:
            self._came_s = time.monotonic()
            try:
                self.arrivals.add(read_identity(text))
            except ValueError as error:
                self.arrivals.add_unreadable(str(error))
        return left
