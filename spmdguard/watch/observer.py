"""This rank over time: from look to look, whether it moves, waits, or computes, and for how long."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

from spmdguard.group.progress import find_groups
from spmdguard.phases import phases
from spmdguard.watch.limits import Limits, kind_of
from spmdguard.watch.looking import Look, find_calls, look_at, pending_of
from spmdguard.watch.standing import GroupNumber, Standing

MAX_CALLS = 128
_ASK_RECORDER_AFTER_S = 1.0
_BUSY_SHARE = 0.2


class Observer:
    """Makes standings of this process; ``look`` is called by the watch thread alone."""

    def __init__(
        self,
        *,
        rank: int,
        local_rank: int,
        host: str,
        limits: Limits,
        find_step: Callable[[], int | None],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.rank, self.local_rank, self.host = rank, local_rank, host
        self.limits = limits
        self._find_step = find_step
        self._now = now
        self._phases = phases()
        self._thread_id = threading.main_thread().ident or 0
        self._look: Look | None = None
        self._numbers: tuple[object, ...] = ()
        self._stands_since_s = now()
        self._cpu_s_then = 0.0
        self._asked_s = 0.0
        self._pending = ""
        self._waited_kind = ""
        self.met = False
        """Whether this rank has had a process group."""
        self.standing = Standing(rank=rank, host=host, pid=os.getpid(), local_rank=local_rank)

    def look(self) -> bool:
        """Look again; whether the standing has changed in more than its age."""
        look = look_at(self._thread_id)
        if look is None:
            return False
        now_s = self._now()
        groups = self.find_groups()
        self.met = self.met or bool(groups)
        numbers = (*(group.number for group in groups), len(groups))
        before = self._look
        if before is None or look.mark != before.mark or numbers != self._numbers:
            self._moved(now_s, look)
        self._look, self._numbers = look, numbers
        stood_s = now_s - self._stands_since_s
        if not look.operation and stood_s > _ASK_RECORDER_AFTER_S and now_s - self._asked_s > 1.0:
            self._asked_s = now_s
            self._pending = self._find_pending()
        operation = look.operation or self._pending
        waits = bool(operation) and before is not None and look.mark == before.mark
        if waits:
            self._waited_kind = kind_of(self._phases.open, look.places)
        busy = look.cpu_s - self._cpu_s_then > _BUSY_SHARE * stood_s and stood_s > 0
        standing = Standing(
            rank=self.rank,
            host=self.host,
            pid=os.getpid(),
            local_rank=self.local_rank,
            state="waiting" if waits else "running",
            places=look.places,
            operation=operation,
            since_s=stood_s,
            busy=busy,
            groups=groups,
            step=self._find_step(),
            phases=self._phases.open,
        )
        changed = _without_age(standing) != _without_age(self.standing)
        self.standing = standing
        return changed

    def find_groups(self) -> tuple[GroupNumber, ...]:
        """Every process group of this process, with its number now."""
        return tuple(GroupNumber(g.name, g.label, g.members, g.number) for g in find_groups())

    def _moved(self, now_s: float, look: Look) -> None:
        if self._waited_kind and self.met:
            self.limits.observe(self._waited_kind, now_s - self._stands_since_s)
        self._waited_kind = self._pending = ""
        self._stands_since_s = now_s
        self._cpu_s_then = look.cpu_s

    def _find_pending(self) -> str:
        """An operation that torch recorded as begun and not done, although the main thread is elsewhere."""
        pending = pending_of(find_calls(MAX_CALLS))
        old = pending is not None and time.time() - pending.began_s > _ASK_RECORDER_AFTER_S
        return pending.operation if pending is not None and old else ""

    def waited_s(self) -> float:
        """For how long this rank has waited in communication; 0 where it does not."""
        return self._now() - self._stands_since_s if self.standing.state == "waiting" else 0.0

    @property
    def mark(self) -> int:
        """Changes whenever the main thread has moved."""
        return 0 if self._look is None else self._look.mark

    def stood_s(self) -> float:
        """For how long the main thread has not moved."""
        return self._now() - self._stands_since_s


def _without_age(standing: Standing) -> tuple[object, ...]:
    return (
        standing.state,
        standing.places,
        standing.operation,
        standing.groups,
        standing.step,
        standing.phases,
        standing.busy,
    )
