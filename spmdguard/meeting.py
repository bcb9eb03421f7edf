"""Ranks meeting outside the training computation: refuse where it cannot work, explain where it failed.

Used by ``barrier``, ``main_process_first``, ``sync_should_stop``, ``run`` and ``save_checkpoint``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from spmdguard import region
from spmdguard.clock import clock
from spmdguard.errors import RanksMissing
from spmdguard.format import find_user_frame, format_exception_line, format_place
from spmdguard.group import guard
from spmdguard.group.world import Channel, world
from spmdguard.latch import latch

_R = TypeVar("_R")


def check_may_meet(operation: str, group: Any = None) -> None:
    """Raise where this rank cannot take part: communication is broken, or it is inside rank-local work."""
    state = latch()
    if state.failure is not None:
        raise state.refuse(operation)
    if region.thread.regions:
        raise guard.refuse(operation, "default_pg" if group is None else group)


def meet(operation: str, channel: Channel, communicate: Callable[[], _R]) -> _R:
    """Run ``communicate``; its failure closes the latch and becomes ``RanksMissing``."""
    started_s = clock().monotonic()
    try:
        return communicate()
    except Exception as exc:
        raise explain(operation, channel, exc, started_s) from exc


def explain(operation: str, channel: Channel, exc: Exception, started_s: float) -> RanksMissing:
    """Close the latch and find out, through the store, which ranks did not come."""
    elapsed_s = clock().monotonic() - started_s
    arrived = channel.find_arrived(operation)
    error = RanksMissing(
        operation=operation,
        missing=None if arrived is None else sorted(set(channel.ranks) - set(arrived)),
        arrived=arrived or [channel.rank],
        group=channel.describe(),
        place=format_place(find_user_frame()),
        failure=format_exception_line(exc),
        elapsed_s=elapsed_s,
    )
    latch().close(error, operation)
    return error


def share_failures(operation: str, failure: str = "", group: Any = None) -> dict[int, str]:
    """Tell every rank which ranks failed and why: texts by rank, the same on every rank; empty if none did.

    Collective: one all_reduce, and one exchange of texts where a rank failed. An empty ``failure`` is none.
    """
    check_may_meet(operation, group)
    channel = world().channel(group)
    if channel is None:
        return {world().rank(): failure} if failure else {}
    latch().num_begun += 1
    anyone = meet(operation, channel, lambda: channel.max_int32(int(bool(failure))))
    if not anyone:
        return {}
    texts = meet(operation, channel, lambda: channel.gather_texts(failure))
    return {rank: text for rank, text in zip(channel.ranks, texts, strict=True) if text}
