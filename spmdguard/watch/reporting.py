"""Calls, answers and reports: a rank asks where all stand, all answer, the leader of rank 0's node reports.

Notes on the node's board, and keys in the job's store where there are several nodes: ``call`` asks, ``full-<rank>``
says that a rank has answered, ``cause`` ends it. A call is withdrawn where the ranks have met meanwhile.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping
from typing import Any

from spmdguard.group.link import LinkLost
from spmdguard.watch.board import Board
from spmdguard.watch.cause import Cause, read_cause
from spmdguard.watch.composing import HINT_TIMEOUT_S, compose, to_cause, write_reports
from spmdguard.watch.diagnosis import stands_still
from spmdguard.watch.hints import Linting, files_of, files_of_program
from spmdguard.watch.joining import Meeting
from spmdguard.watch.leaving import say
from spmdguard.watch.limits import Limits, limit_for
from spmdguard.watch.peers import Peers
from spmdguard.watch.relay import Relay
from spmdguard.watch.settings import Settings

_SETTLE_S = 0.4
_COMING_S = 1.0
_ANSWER_S = 0.6
_SILENT_S = 0.6
_HEARD_S = 1.5
_SHORT_HINT_S = 0.3  # where a rank is gone its partners should leave at once; the linter began with the run
_HASTY_HINT_S = 0.05
_MAX_REASON = 300


class Reporting:
    """One rank's part in calls and reports; used by its watch thread, but for ``call`` and ``post_cause``."""

    def __init__(
        self, board: Board, peers: Peers, relay: Relay, limits: Limits, settings: Settings, meeting: Meeting
    ) -> None:
        self._board, self._peers, self._relay = board, peers, relay
        self._limits, self._settings, self._meeting = limits, settings, meeting
        self._world_size = meeting.world_size
        self._joined_s = time.monotonic()
        self._linting = Linting(files_of_program()) if board.rank == 0 else None
        self._linted_places = False
        self.alone = self._find_alone()
        """Whether all ranks of the run are on this node."""
        self.answered = False

    def talk_to_nodes(self) -> None:
        """As the leader of this node: publish, and bring here what other nodes have raised."""
        self.alone = self._find_alone()
        if self.alone or not self.leads() or self._may_be_alone() or not self._relay.is_ready():
            return
        try:
            if self._relay.is_due():
                self._relay.publish(self._peers.read_all())
            for name, note in self._relay.listen().items():
                if self._board.post(name, dict(note)) and name == "cause":
                    self._relay.confirm()
        except LinkLost:
            self.call("the job's store cannot be reached: its host or process is gone")
            self.alone = True

    def wait_until_heard(self) -> None:
        """As rank 0, which may hold the store: let the other nodes hear of the cause before it is gone."""
        if not self.alone and self._board.rank == 0:
            with contextlib.suppress(LinkLost):
                self._relay.wait_until_heard(_HEARD_S)

    def _find_alone(self) -> bool:
        return self._meeting.one_node or len(self._board.ranks()) >= self._world_size

    def _may_be_alone(self) -> bool:
        """No launcher says how many ranks a node has, and the others of this one may be about to come."""
        return self._meeting.num_here is None and time.monotonic() - self._joined_s < _COMING_S

    def leads(self) -> bool:
        """Whether this rank speaks for its node."""
        return self._peers.leader() == self._board.rank

    def post_cause(self, cause: Cause) -> Cause:
        """Make this the first cause unless there is one; the one that stays."""
        note = cause.to_note()
        if not self.alone:
            with contextlib.suppress(LinkLost):
                note = dict(self._relay.raise_alarm("cause", note))
        if self._board.post("cause", note):
            return read_cause(note) or cause
        return self.find_cause() or cause

    def find_cause(self) -> Cause | None:
        """The first cause, where there is one."""
        return read_cause(self._board.find("cause")) if self._board.has("cause") else None

    def call(self, reason: str, limit_s: float | None = None) -> None:
        """Ask every rank where it stands."""
        note = {"rank": self._board.rank, "reason": reason, "limit_s": limit_s, "at": time.time()}
        self._board.post("call", note)
        if not self.alone:
            with contextlib.suppress(LinkLost):
                self._relay.raise_alarm("call", note)
        self._peers.wake()

    def lint_places(self) -> None:
        """Before a report may be due: have the linter read the files in which ranks stand."""
        if self._linted_places or not self.leads():
            return
        self._linted_places = True
        places = [place for each in self._peers.read_all() for place in each.places]
        if self._linting is None or not self._linting.covers(places):
            self.stop_linting()
            self._linting = Linting(files_of(places))

    def stop_linting(self) -> None:
        """End the linter's process."""
        if self._linting is not None:
            self._linting.stop()
            self._linting = None

    def answer(self, say_standing: Callable[[], None]) -> Cause | None:
        """Say in detail where this rank stands; as the leader, report: the cause that this rank has posted."""
        if not self.answered:
            self.answered = True
            say_standing()
            self._board.post(f"full-{self._board.rank}", {})
        if not self.leads():
            return None
        if not self.alone:
            with contextlib.suppress(LinkLost):
                self._wait_for_answers()
                self._relay.publish(self._peers.read_all(), detail=True)
        call = self._board.find("call") or {}
        if self._composes(call):
            return self.report(call)
        if _age_of(call) > 1.0:
            with contextlib.suppress(LinkLost):
                if not self._relay.is_called():
                    self._forget_call()
        return None

    def _composes(self, call: Mapping[str, Any]) -> bool:
        """The node of rank 0 makes the report; another one does where rank 0's is not heard of."""
        return self.alone or 0 in self._board.ranks() or _age_of(call) > 3.0

    def _wait_for_answers(self) -> None:
        def silent() -> bool:
            ranks = self._board.ranks()
            return any(self._peers.is_alive(rank) and not self._board.has(f"full-{rank}") for rank in ranks)

        self._wait_while(silent, _ANSWER_S)

    def _wait_while(self, condition: Callable[[], bool], timeout_s: float) -> None:
        deadline_s = time.monotonic() + timeout_s
        while time.monotonic() < deadline_s and condition():
            self._peers.wait(0.02)
            self._board.beat()

    def report(self, call: Mapping[str, Any], *, in_haste: bool = False) -> Cause | None:
        """Make the report, unless there is a cause already or nothing stands still: the cause that was posted."""
        if not in_haste:
            settled_s = time.monotonic() + _SETTLE_S
            self._wait_for_answers()  # and a rank that fails may be about to say so
            self._wait_while(lambda: time.monotonic() < settled_s and not self._board.has("cause"), _SETTLE_S)
            self._wait_while(self._some_are_silent, _SILENT_S)
        if self._board.has("cause"):
            return None
        standings = self._peers.read_all()
        if not self.alone:
            with contextlib.suppress(LinkLost):
                standings += self._relay.gather(_ANSWER_S)
        at_limit = call.get("limit_s") is not None
        limit_s = _number(call.get("limit_s"), limit_for(self._limits, standings))
        if not stands_still(standings, self._world_size, limit_s):
            self._withdraw()
            return None
        standings += self._meeting.find_processes(set(range(self._world_size)) - {e.rank for e in standings})
        report = compose(
            standings,
            world_size=self._world_size,
            limit_s=limit_s,
            reason=str(call.get("reason", ""))[:_MAX_REASON],
            linting=self._linting,
            hint_timeout_s=_HASTY_HINT_S if in_haste else HINT_TIMEOUT_S if at_limit else _SHORT_HINT_S,
        )
        cause = to_cause(report)
        if self.post_cause(cause) != cause:
            return None
        say(cause.report)
        if self._settings.report_dir is not None:
            for path in write_reports(report, self._settings.report_dir)[2:3]:
                say(f"spmdguard: the report as a page: {path}")
        return cause

    def _some_are_silent(self) -> bool:
        """A rank of which nothing is heard holds the GIL, or only gets no CPU for a moment."""
        return any(each.state == "silent" for each in self._peers.read_all())

    def _withdraw(self) -> None:
        """The ranks have met after all."""
        self._forget_call()
        if not self.alone:
            with contextlib.suppress(LinkLost):
                self._relay.withdraw()

    def _forget_call(self) -> None:
        for rank in self._board.ranks():
            self._board.forget(f"full-{rank}")
        self._board.forget("call")


def _age_of(call: Mapping[str, Any]) -> float:
    return time.time() - _number(call.get("at"), time.time())


def _number(value: object, default: float) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else default
