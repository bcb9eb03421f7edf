"""Who this process is, and waiting for each other."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from spmdguard import region
from spmdguard.errors import OtherRanksFailed
from spmdguard.format import find_user_frame, format_exception_line, format_place
from spmdguard.group.world import world
from spmdguard.latch import is_communication_failure, latch
from spmdguard.meeting import check_may_meet, meet, share_failures

__all__ = ["barrier", "is_main_process", "main_process_first"]


def is_main_process() -> bool:
    """Whether this process is rank 0; true in a single process.

    SPMD:
        Rank-local: no communication.
        Called by: any rank, also before ``init_process_group`` (then from the launcher's environment).
        Result: rank-varying; put no collective under it.
        Raises on: no rank.
    """
    return world().rank() == 0


def barrier(name: str | None = None, *, group: Any = None) -> None:
    """Wait until every rank of the group has come; nothing to wait for in a single process.

    SPMD:
        Collective: one barrier on ``group``, on CPU memory.
        Called by: every rank of ``group``, in the same order.
        Result: none.
        Raises on: every rank that came, where some ranks never come.

    Args:
        name: label in messages.
        group: the process group; None is the default group.

    Raises:
        RanksMissing: the barrier failed or timed out; the error names the ranks that did not come.
        CommunicationBroken: an earlier collective failed on this rank.
        CollectiveInRankLocalError: called inside rank-local work.
    """
    operation = f"barrier {name!r}" if name else "barrier"
    check_may_meet(operation, group)
    channel = world().channel(group)
    if channel is not None:
        latch().num_begun += 1
        meet(operation, channel, channel.barrier)


@contextlib.contextmanager
def main_process_first(*, local: bool = False) -> Iterator[None]:
    """Let the main process run the block before the others: download once, then read the cache.

    The block is rank-local work: a collective inside raises ``CollectiveInRankLocalError``. Where it raises
    on one rank, no rank waits for ever: the error leaves the block on that rank, ``OtherRanksFailed`` on all
    others, which do not enter the block where the main process failed in it.

    SPMD:
        Collective: two agreements on the default group, after the main process and after the others.
        Called by: every rank, in the same order.
        Result: none.
        Raises on: every rank, where the block raised on one.

    Args:
        local: let local rank 0 of each host go first instead, for a cache that each host has for itself.

    Raises:
        OtherRanksFailed: the block raised on another rank.
    """
    name = "main_process_first"
    check_may_meet(name)
    first = (world().local_rank() if local else world().rank()) == 0
    own: Exception | None = None
    failures: dict[int, str] = {} if first else share_failures(name)
    if not failures:
        try:
            with region.opened(name):
                yield
        except Exception as exc:
            if is_communication_failure(exc):
                raise
            own = exc
        failures = share_failures(name, "" if own is None else format_exception_line(own))
    if first and not failures:
        failures = share_failures(name)
    if own is not None:
        raise own
    if failures:
        raise OtherRanksFailed(failures=failures, place=f"{name} at {format_place(find_user_frame())}")
