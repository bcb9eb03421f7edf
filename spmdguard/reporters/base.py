"""What all reporters share: open on the main rank only, never fatal, never silent, closed with the truth."""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Literal

from spmdguard.format import add_note, format_exception_line
from spmdguard.group.world import world
from spmdguard.reporters.outcome import Outcome, outcome_of
from spmdguard.work import RankLocalWork

logger = logging.getLogger("spmdguard")


class Reporter(AbstractContextManager["Reporter"], ABC):
    """A tracker for ``run(reporter=...)``: opened on the main rank only, told how the whole run ended.

    Make it on every rank and call ``log`` on every rank: only the main one opens the tracker and sends.
    Subclasses implement ``_open``, ``_log`` and ``_close``; their errors are deferred, so that a tracker
    that is down neither stops a rank on its own nor goes unnoticed. The main rank is told from the
    environment (``RANK``) before ``init_process_group``.

    SPMD:
        Rank-local: no communication.
        Called by: every rank; all but the main one do nothing.
        Result: none.
        Raises on: no rank, except the main one where closing fails and no process group is left.
    """

    name = "reporter"

    def __init__(self) -> None:
        self._is_open = False

    @property
    def is_open(self) -> bool:
        """Whether this rank has the tracker open."""
        return self._is_open

    @abstractmethod
    def _open(self) -> None:
        """Open the tracker; runs on the main rank only."""

    @abstractmethod
    def _log(self, metrics: Mapping[str, float], step: int | None) -> None:
        """Send metrics; runs where it is open only."""

    @abstractmethod
    def _close(self, outcome: Outcome, exc: BaseException | None) -> None:
        """Tell the tracker how the run ended, and close it."""

    def __enter__(self) -> Reporter:
        """Open the tracker on the main rank; an error is deferred."""
        if world().rank() == 0 and not self._is_open:
            self._is_open = self._defer(self._open, "open")
        return self

    def log(self, metrics: Mapping[str, float], *, step: int | None = None) -> None:
        """Send metrics; an error is deferred.

        SPMD:
            Rank-local: a collective inside raises ``CollectiveInRankLocalError``; none is begun here.
            Called by: any rank; only the main one sends.
            Result: none.
            Raises on: no rank.

        Args:
            metrics: numbers by name.
            step: the training step.
        """
        if self._is_open:
            self._defer(lambda: self._log(metrics, step), "log")

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> Literal[False]:
        """Close the tracker with the outcome of the run.

        Its own error is deferred while there is a process group, raised where none is left and nothing else
        failed, and otherwise logged and noted on the failure.
        """
        if not self._is_open:
            return False
        self._is_open = False
        outcome = outcome_of(exc)
        if exc is None and world().world_size() > 1:
            self._defer(lambda: self._close(outcome, None), "close")
            return False
        try:
            self._close(outcome, exc)
        except Exception as failure:
            if exc is None:
                raise
            logger.exception("%s failed while it was closed", self.name)
            add_note(exc, f"spmdguard: {self.name} could not be closed: {format_exception_line(failure)}")
        return False

    def _defer(self, work: Callable[[], Any], what: str) -> bool:
        """Run rank-local work; whether it went well."""
        rank_local = RankLocalWork(f"{self.name}: {what}")
        try:
            rank_local.step(work)
            return True
        except Exception as exc:
            caught = exc
        try:
            rank_local.settle(caught)
        finally:
            del caught
        return False


def call_within(work: Callable[[], Any], timeout_s: float, what: str) -> None:
    """Run ``work`` in a thread of its own and wait for it no longer than ``timeout_s``.

    Raises:
        TimeoutError: it still runs; its thread is left behind.
    """
    failures: list[BaseException] = []

    def helper() -> None:
        try:
            work()
        except BaseException as exc:
            failures.append(exc)

    thread = threading.Thread(target=helper, name=f"spmdguard {what}", daemon=True)
    thread.start()
    thread.join(timeout_s)
    if thread.is_alive():
        raise TimeoutError(f"{what} did not return within {timeout_s:g} s")
    if failures:
        raise failures[0]
