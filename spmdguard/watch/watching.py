"""The watch thread of one rank: look, say what it sees, judge, and act on the run's first cause.

The thread starts before the process group exists and waits for it. It never raises into the program: where
it cannot go on it says so once and ends.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable
from dataclasses import replace

from spmdguard.format import format_exception_line, format_ranks, name_ranks
from spmdguard.group.world import TorchWorld
from spmdguard.watch.board import Board, find_host, folder_for, remove_left_over
from spmdguard.watch.cause import FAILED, STALLED, Cause
from spmdguard.watch.fatal import FatalRecord
from spmdguard.watch.interrupting import Interruption
from spmdguard.watch.joining import LateWatch, can_meet, find_meeting
from spmdguard.watch.leaving import (
    acknowledge,
    continue_stopped,
    describe_for,
    end,
    end_with,
    let_others_end,
    linger,
    remove_board,
    say,
    write_files_for,
)
from spmdguard.watch.limits import Limits, limit_for
from spmdguard.watch.looking import find_calls, last_seen, places_of_traceback
from spmdguard.watch.native import NativeWatchdog
from spmdguard.watch.observer import MAX_CALLS, Observer
from spmdguard.watch.peers import Peers
from spmdguard.watch.relay import Relay
from spmdguard.watch.report import format_places
from spmdguard.watch.reporting import Reporting
from spmdguard.watch.settings import Settings
from spmdguard.watch.standing import Call, GroupNumber, Standing, State, to_json
from spmdguard.watch.terminating import Termination, die

TICK_S = 0.4
_JOIN_TICK_S = 0.02
_JOIN_TIMEOUT_S = 1.5
ALERT_TICK_S = 0.1
_ALERT_AFTER_S = 0.5
_DEAD_PEER_S = 0.4
_ENDED_PEER_S = 1.2
_WAIT_FOR_CAUSE_S = 6.0
_INTERRUPTED = 130


class Watch(threading.Thread):
    """Watches this process. ``leave`` is for the main thread, everything else for the watch itself."""

    def __init__(self, settings: Settings, find_step: Callable[[], int | None]) -> None:
        super().__init__(name="spmdguard watch", daemon=True)
        self.settings = settings
        self.limits = Limits(given_s=settings.stall_limit_s)
        self._find_step = find_step
        self._world = TorchWorld()
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._left = False
        self._obeyed = False
        self._termination = Termination()
        self._interruption = Interruption(self._termination)
        self.ready = threading.Event()

    def run(self) -> None:
        try:
            if self._join_others():
                self._tick()
                self.ready.set()
                while not self._stopping.is_set():
                    self.peers.wait(self._tick_s())
                    self._tick()
        except Exception as exc:
            if not self._stopping.is_set():
                say(f"spmdguard: the watch of this rank ended: {format_exception_line(exc)}")

    def _join_others(self) -> bool:
        """Wait for a way to the others, then find the board of this node; False where the run ends before."""
        while (meeting := find_meeting(self._world)) is None:
            if self._stopping.wait(_JOIN_TICK_S):
                return False
        link, rank = meeting.link, meeting.rank
        token = link.agree("token", os.urandom(12).hex())
        if not (len(token) == 24 and token.isalnum()):
            raise ValueError("the job's store holds no token of the watch")
        folder = folder_for(token)
        remove_left_over(folder.parent)
        self.board = Board(folder, rank)
        self.peers = Peers(self.board, self._termination.reading)
        self._late = LateWatch(meeting)
        self._num_here = min(meeting.world_size, meeting.num_here or meeting.world_size)
        self.reporting = Reporting(
            self.board,
            self.peers,
            Relay(link, self.board),
            self.limits,
            self.settings,
            meeting,
        )
        self.observer = Observer(
            rank=rank,
            local_rank=meeting.local_rank,
            host=find_host(),
            limits=self.limits,
            find_step=self._find_step,
        )
        self.board.write(to_json(self.observer.standing))
        self.native = NativeWatchdog(folder, rank)
        self.fatal = FatalRecord(folder, rank)
        self._termination.has_news = lambda: self._left or bool(self.peers.gone)
        return True

    def _tick_s(self) -> float:
        alert = self.observer.stood_s() > _ALERT_AFTER_S or self.board.has("cause")
        return ALERT_TICK_S if alert else TICK_S

    def _tick(self) -> None:
        self.native.arm()
        with self._lock:
            if self._left:
                self.board.beat()
            elif self.observer.look() or self.board.find_size() == 0:
                self._say_standing()
            else:
                self.board.beat()
        self.peers.find_new()
        if self._termination.was_asked():
            self._be_terminated()
        interrupted = not self._left and not self._obeyed and self._interruption.holds(self.observer)
        self.reporting.talk_to_nodes()
        self._late.look()
        if interrupted:  # it says so itself, whatever other ranks say meanwhile
            if self._interruption.overdue:
                self._end_interrupted()
            return
        cause = self.reporting.find_cause()
        if cause is None and self.board.has("call"):
            cause = self.reporting.answer(self._say_if_here)
        elif cause is None:
            self.reporting.answered = False
            if not self._left:
                self._judge()
        if cause is not None:
            self._obey(cause)

    def _say_if_here(self) -> None:
        with self._lock:
            if not self._left:
                self._say_standing()

    def _say_standing(self) -> None:
        """Write where this rank stands; in detail where it was asked for."""
        standing = self.observer.standing
        if self.reporting.answered:
            standing = replace(standing, calls=find_calls(MAX_CALLS))
        self.board.write(to_json(standing))

    # -- judging

    def _judge(self) -> None:
        """Whether this rank waits too long, or for a rank that is gone."""
        waited_s = self.observer.waited_s()
        if waited_s <= 0:
            return
        rank = self.board.rank
        gone = self._gone_partners(waited_s)
        if gone:
            have = "has" if len(gone) == 1 else "have"
            self.reporting.call(f"rank {rank} waits for {name_ranks(gone)}, which {have} gone")
            return
        least_s = 0.0 if self.observer.met else self.settings.start_limit_s
        own_s = max(least_s, limit_for(self.limits, [self.observer.standing]))
        if waited_s > own_s / 2:
            self.reporting.lint_places()
        if waited_s > own_s:
            limit_s = max(least_s, limit_for(self.limits, self.peers.read_all()))
            if waited_s > limit_s:
                text = f"rank {rank} has waited {waited_s:.1f} s; the limit is {limit_s:g} s"
                self.reporting.call(text, limit_s)

    def _gone_partners(self, waited_s: float) -> list[int]:
        """Ranks whose process has ended and that take part in what this rank waits in."""
        if waited_s < _DEAD_PEER_S or not self.peers.gone:
            return []
        pending = [call for call in find_calls(MAX_CALLS) if not call.done]
        groups = [self.observer.standing.find_group(call.group) for call in pending]
        members = {rank for group in groups if group is not None for rank in group.ranks}
        found = []
        for rank in self.peers.gone:
            standing = self.peers.read(rank)
            if standing is None or (members and rank not in members):
                continue
            if standing.state == "died" or waited_s > _ENDED_PEER_S:
                found.append(rank)
        return found

    # -- leaving

    def _obey(self, cause: Cause) -> None:
        """Leave because of another rank, as soon as this one is blocked; the main thread does it, if it leaves."""
        if self._left or self._obeyed:
            return
        rank, waited_s = self.board.rank, self.observer.waited_s()
        if cause.kind == FAILED:
            saving = bool(self.observer.standing.phases)
            stands = self.observer.met and self.observer.stood_s() > 1.0 and not saving
            if cause.concerns(rank) or not (waited_s > 0 or stands):
                return
        self._obeyed = True
        if cause.kind == STALLED and not self.settings.abort:
            return
        text = describe_for(rank, cause, self.observer.standing, waited_s)
        say(text)
        write_files_for(rank, cause, text)
        acknowledge(self.board, rank)
        self.reporting.stop_linting()
        self.reporting.wait_until_heard()
        linger(self.board, self.peers)
        if cause.kind == STALLED:
            continue_stopped(self.peers.read_all())  # last: it would meet the others, who would go on
        remove_board(self.board, self.peers, self._num_here)
        end(cause)

    def _be_terminated(self) -> None:
        """A launcher ends this rank: say which rank died before, where that is known, and end."""
        if self._left:  # the main thread is about to end by itself
            if self._termination.asked_s() > _WAIT_FOR_CAUSE_S:
                die()
            return
        died = [each for each in self.peers.read_all() if each.state == "died"]
        if died and not self.board.has("cause"):
            self.reporting.report({"reason": f"rank {self.board.rank} is terminated"}, in_haste=True)
        cause = self.reporting.find_cause()
        if cause is not None and not cause.concerns(self.board.rank):
            waited_s = self.observer.waited_s()
            say(describe_for(self.board.rank, cause, self.observer.standing, waited_s))
        remove_board(self.board, self.peers, self._num_here)
        die()

    def _end_interrupted(self) -> None:
        """In place of the main thread, which is blocked in a collective: say where, and end as after Ctrl-C."""
        standing, rank = self.observer.standing, self.board.rank
        self._obeyed = True
        with self._lock:
            self.board.write(
                to_json(
                    replace(standing, state="raised", failure="KeyboardInterrupt", exit_code=_INTERRUPTED)
                )
            )
        say(
            f"spmdguard: rank {rank} was interrupted; it had waited {self.observer.waited_s():.1f} s in "
            f"{standing.operation} at {format_places(standing.places, 3)}"
        )
        acknowledge(self.board, rank)
        self.reporting.stop_linting()
        remove_board(self.board, self.peers, self._num_here)
        end_with(_INTERRUPTED)

    def leave(
        self, state: State, *, exc: BaseException | None, victim: bool, code: int | None, failure: str
    ) -> Cause | None:
        """From the main thread: say how this rank leaves; the first cause, where it is another rank's."""
        if can_meet() and self.is_alive():
            self.ready.wait(_JOIN_TIMEOUT_S)  # it left as soon as it had met the others
        if not self.ready.is_set() or self._left:
            return None
        if self._obeyed and self.settings.abort:
            time.sleep(_WAIT_FOR_CAUSE_S)  # the watch thread is about to end the process
        with self._lock:
            self._left = True
            standing = self._last_standing(state, exc, victim, code, failure)
            self.board.write(to_json(standing))
        rank = self.board.rank
        self.board.post(f"full-{rank}", {})
        if state != "raised":
            return None
        if victim:
            self.reporting.call(f"rank {rank} lost its partner: {failure[:120]}")
            return self._wait_for_cause()
        places = f" (at {standing.places[0]})" if standing.places else ""
        title = f"{name_ranks([rank])} failed first: {standing.failure}{places}"
        cause = self.reporting.post_cause(Cause(FAILED, format_ranks([rank]), title))
        self.peers.wake()
        return None if cause.concerns(rank) else cause

    def _last_standing(
        self, state: State, exc: BaseException | None, victim: bool, code: int | None, failure: str
    ) -> Standing:
        last = self.observer.standing
        places = places_of_traceback(exc) if exc is not None else ()
        calls = find_calls(MAX_CALLS)
        return replace(
            last,
            state=state,
            places=places or (last_seen(calls) if state == "ended" else ()) or last.places,
            since_s=0.0,
            failure=failure,
            victim=victim,
            exit_code=code,
            groups=self.observer.find_groups() or _brought_up_to(last.groups, calls),
            calls=calls,
        )

    def _wait_for_cause(self) -> Cause | None:
        deadline_s = time.monotonic() + _WAIT_FOR_CAUSE_S
        while time.monotonic() < deadline_s:
            cause = self.reporting.find_cause()
            if cause is not None:
                return cause
            time.sleep(0.02)
        return None

    def has_said(self) -> None:
        """From the main thread: why this rank leaves stands on stderr."""
        if self.ready.is_set() and self._left:
            acknowledge(self.board, self.board.rank)

    def finish(self, cause: Cause | None, *, failing: bool) -> None:
        """From the main thread, last: let the other ranks say the cause, or end well, before this process ends."""
        if not self.ready.is_set():
            self._stopping.set()
            return
        rank = self.board.rank
        acknowledge(self.board, rank)
        first = cause or self.reporting.find_cause()
        if first is not None:
            self.reporting.wait_until_heard()
            linger(self.board, self.peers)
        elif failing:
            with contextlib.suppress(OSError):
                let_others_end(self.board, self.peers)
        self._stopping.set()
        self.peers.wake()
        self.join(1.0)
        self.reporting.stop_linting()
        self.native.close()
        self.fatal.close()
        self._termination.close(failing=first is not None)
        remove_board(self.board, self.peers, self._num_here)


def _brought_up_to(groups: tuple[GroupNumber, ...], calls: tuple[Call, ...]) -> tuple[GroupNumber, ...]:
    """Groups that are destroyed, with the numbers that the recorded calls show."""
    numbers: dict[str, int] = {}
    for call in calls:
        if not call.point_to_point:
            numbers[call.group] = max(call.number, numbers.get(call.group, 0))
    return tuple(replace(each, number=numbers.get(each.name, each.number)) for each in groups)
