"""Agree on stopping: one int32 MAX all_reduce on CPU memory a step; texts travel only after a true verdict.

With ``overlap=True`` ranks of one host need no all_reduce: ``group/same_host.py``.

The number that ranks reduce is the call number, with a high bit where the rank asks to stop: the maximum also
tells a rank that is behind, or that met another collective, that it is out of step, at no extra cost.
"""

from __future__ import annotations

import logging
import weakref
from typing import Any

from spmdguard import region
from spmdguard.clock import clock
from spmdguard.current import PerProcess
from spmdguard.deferred import store
from spmdguard.errors import RanksOutOfStep
from spmdguard.format import find_user_frame, format_exception_line, format_place
from spmdguard.group.timeouts import step_timeout
from spmdguard.group.world import Channel, Pending, world
from spmdguard.latch import latch
from spmdguard.meeting import check_may_meet, explain, meet
from spmdguard.stop.reason import StopReason
from spmdguard.stop.sources import sources

logger = logging.getLogger("spmdguard")
_NAME = "sync_should_stop"
_ASKED = 2**30


class _GroupState:
    """Calls counted and the agreement under way on one group."""

    def __init__(self) -> None:
        self.calls: dict[int, int] = {}
        self.num_agreements = 0
        self.pending: Pending | None = None
        self.pending_own = 0
        self.pending_text = ""
        self.last_true: int | None = None
        self.true_at: set[str] = set()
        self.told = False

    def is_due(self, every_n_steps: int) -> bool:
        """Count a call of a loop with this interval: whether it agrees."""
        if every_n_steps < 1:
            raise ValueError(f"every_n_steps must be at least 1, got {every_n_steps!r}")
        calls = self.calls[every_n_steps] = self.calls.get(every_n_steps, 0) + 1
        return calls % every_n_steps == 0


class StopState:
    """What ``sync_should_stop`` remembers between calls, by channel: a rebuilt group starts anew."""

    def __init__(self) -> None:
        self.alone = _GroupState()
        self.by_channel: weakref.WeakKeyDictionary[Channel, _GroupState] = weakref.WeakKeyDictionary()
        self.reason: StopReason | None = None
        self.last_channel: Channel | None = None
        self.last = self.alone
        self.latch, self.store, self.world = latch(), store(), world()
        self.sources, self.clock = sources(), clock()
        self.timeout = step_timeout()

    def find(self, channel: Channel | None) -> _GroupState:
        """The counters of a channel, or of the single process."""
        if channel is None:
            return self.alone
        known = self.by_channel.get(channel)
        if known is None:
            known = self.by_channel[channel] = _GroupState()
        self.last_channel, self.last = channel, known
        return known


state: PerProcess[StopState] = PerProcess(StopState)


def stop_reason() -> StopReason | None:
    """Why the last true ``sync_should_stop`` was true; None before.

    SPMD:
        Rank-local: no communication.
        Called by: any rank, after ``sync_should_stop``.
        Result: rank-invariant.
        Raises on: no rank.
    """
    return state().reason


def sync_should_stop(
    should_stop: bool | None = None,
    *,
    every_n_steps: int = 1,
    overlap: bool = False,
    group: Any = None,
) -> bool:
    """Agree, across the group, whether to stop after this step.

    True on every rank as soon as one rank asks: by ``should_stop``, by a deferred error, or by an open
    ``stop_on_signal`` or ``stop_after``. Those three ask whatever ``should_stop`` says, so that no error and
    no signal is forgotten. Call it once an optimizer step, after gradients have been accumulated. In nested
    loops break the outer one too; where an outer loop goes on, the log says so once.

    SPMD:
        Collective: one int32 MAX all_reduce on ``group`` every ``every_n_steps`` calls, on CPU memory; after
            a true verdict one exchange of texts.
        Called by: every rank of ``group``, once a step, in the same order.
        Result: rank-invariant.
        Raises on: every rank that came, where some ranks never come.

    Args:
        should_stop: whether this rank asks for a reason of its own; None and False ask for none.
        every_n_steps: agree on every n-th call only and return False in between.
        overlap: return the verdict about the previous agreement and start the next one in the background:
            one step late on every rank alike, and no waiting. The same on every rank. Where all ranks of the
            group are on one host, it goes through shared memory (Linux) and no collective is begun.
        group: the process group; None is the default group. Without a group the answer is this process's own.

    Returns:
        Whether to stop; the same on every rank at the same call.

    Raises:
        RanksMissing: the agreement failed or timed out; the error names the ranks that did not come.
        RanksOutOfStep: ranks met at different calls.
        CommunicationBroken: an earlier collective failed on this rank.
        ValueError: ``every_n_steps`` is below 1.
    """
    stop = state()
    if stop.latch.failure is not None or region.thread.regions:
        check_may_meet(_NAME, group)
    channel = stop.world.channel(group)
    known = stop.last if channel is stop.last_channel else stop.find(channel)
    if every_n_steps != 1 and not known.is_due(every_n_steps):
        return False
    asked = bool(should_stop) or stop.store.first is not None
    if not asked and stop.sources.any_open:
        asked = stop.sources.wants()
    number = known.num_agreements = known.num_agreements + 1
    if channel is None:
        verdict = asked
    elif overlap or known.pending is not None:
        text = _own_text(should_stop) if asked else ""
        verdict = _agree_late(stop, channel, known, text, overlap)
    else:  # in line, as everything up to here: this runs once a step
        own = number % _ASKED + _ASKED * asked
        started_s = stop.clock.monotonic()
        try:
            agreed = channel.max_int32(own)
        except Exception as exc:
            raise explain(_NAME, channel, exc, started_s) from exc
        verdict = asked if agreed == own else _read(channel, agreed, number)
    if verdict:
        text = known.pending_text or (_own_text(should_stop) if asked else "")
        _learn_reason(channel, known, text, late=overlap)
    if stop.timeout.armed_s is not None:
        stop.timeout.step_done()
    return verdict


def _read(channel: Channel, agreed: int, number: int) -> bool:
    """The verdict, where every rank was at the same call as far as this one can see."""
    if agreed % _ASKED == number % _ASKED and agreed >= 0:
        return agreed >= _ASKED
    error = RanksOutOfStep(
        operation=_NAME,
        own=number,
        other=agreed % _ASKED if agreed >= 0 else agreed,
        rank=channel.rank,
        place=format_place(find_user_frame()),
    )
    latch().close(error, _NAME)
    raise error


def _agree_late(stop: StopState, channel: Channel, known: _GroupState, text: str, overlap: bool) -> bool:
    """Verdict of the agreement begun one call earlier; begin the next, or do it now without ``overlap``.

    Flat, because it runs once a step, with caches that the step has filled.
    """
    pending = known.pending
    started_s = stop.clock.monotonic()
    if pending is not None:
        known.pending = None
        try:
            agreed = pending.wait()
        except Exception as exc:
            raise explain(_NAME, channel, exc, started_s) from exc
        if agreed != known.pending_own or agreed >= _ASKED:
            verdict = _read(channel, agreed, known.pending_own % _ASKED)
            if verdict:
                return True
    number = known.num_agreements
    own = known.pending_own = number % _ASKED + _ASKED * bool(text)
    if not overlap:
        return _read(channel, meet(_NAME, channel, lambda: channel.max_int32(own)), number)
    known.pending_text = text
    try:
        known.pending = channel.start_max_int32(own)
    except Exception as exc:
        raise explain(_NAME, channel, exc, started_s) from exc
    return False


def _finish(channel: Channel, known: _GroupState) -> bool:
    pending, known.pending = known.pending, None
    assert pending is not None
    return _read(channel, meet(_NAME, channel, pending.wait), known.pending_own % _ASKED)


def drain() -> None:
    """Finish agreements under way in the background, before the process group is destroyed."""
    for channel, known in list(state().by_channel.items()):
        if known.pending is not None:
            _finish(channel, known)


def forget_pending() -> None:
    """Drop agreements under way, where communication can no longer succeed."""
    for known in list(state().by_channel.values()):
        known.pending = None


def _own_text(should_stop: bool | None) -> str:
    """Why this rank asks: every reason that it has."""
    error = store().first
    texts = [] if error is None else [f"deferred {format_exception_line(error)}"]
    texts += sources().texts()
    if should_stop:
        texts.append(f"should_stop=True at {format_place(find_user_frame())}")
    return "; ".join(texts)


def _learn_reason(channel: Channel | None, known: _GroupState, text: str, *, late: bool) -> None:
    """Exchange the texts of the ranks that asked, and tell a caller whose outer loop goes on."""
    stop = state()
    known.pending_text = ""
    if channel is None:
        texts = {world().rank(): text}
    else:
        gathered = meet(_NAME, channel, lambda: channel.gather_texts(text))
        texts = {each: said for each, said in zip(channel.ranks, gathered, strict=True) if said}
    stop.reason = StopReason(texts, known.num_agreements)
    place = format_place(find_user_frame())
    was_true = known.last_true == known.num_agreements - (2 if late else 1)
    if (
        was_true and place in known.true_at and not known.told
    ):  # elsewhere it is the outer loop's own question
        known.told = True
        logger.warning(
            "spmdguard: rank %d: %s is true again at %s (%s); the loop around the one you left goes on: break it "
            "too, for example with `if stop_reason(): break`",
            world().rank(),
            _NAME,
            place,
            stop.reason,
        )
    known.true_at.add(place)
    known.last_true = known.num_agreements
