"""Trackers without a status of their own: summary writers, any context manager, and several at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

from spmdguard.reporters.base import Reporter
from spmdguard.reporters.outcome import Outcome


class WriterReporter(Reporter):
    """Report to a writer with ``add_scalar``, such as TensorBoard's ``SummaryWriter``.

    How the run ended is written as text ``spmdguard/outcome`` where the writer has ``add_text``.

    SPMD:
        Rank-local: no communication.
        Called by: every rank; all but the main one do nothing.
        Result: none.
        Raises on: no rank, except the main one where closing fails and no process group is left.

    Args:
        make_writer: called on the main rank, so that the other ranks open no files.
    """

    name = "writer reporter"

    def __init__(self, make_writer: Callable[[], Any]) -> None:
        super().__init__()
        if not callable(make_writer):
            raise TypeError(
                f"make_writer must be callable, got {make_writer!r}; pass a function that makes the writer, "
                "so that only the main rank makes one"
            )
        self._make_writer = make_writer
        self.writer: Any = None

    def _open(self) -> None:
        self.writer = self._make_writer()

    def _log(self, metrics: Mapping[str, float], step: int | None) -> None:
        for name, value in metrics.items():
            self.writer.add_scalar(name, value, step)

    def _close(self, outcome: Outcome, exc: BaseException | None) -> None:
        writer, self.writer = self.writer, None
        try:
            if hasattr(writer, "add_text"):
                text = f"{outcome.status}: {outcome.cause}" if outcome.cause else outcome.status
                writer.add_text("spmdguard/outcome", text)
        finally:
            writer.close()


class ContextReporter(Reporter):
    """Enter any context manager on the main rank, and let it see the exception that ends the run.

    What the context manager returns from ``__exit__`` does not matter: it cannot hide a failure.

    SPMD:
        Rank-local: no communication.
        Called by: every rank; all but the main one do nothing.
        Result: none.
        Raises on: no rank, except the main one where closing fails and no process group is left.

    Args:
        make: called on the main rank; makes the context manager.
        log: called with what ``__enter__`` returned, the metrics and the step; without it ``log`` does nothing.
    """

    name = "context reporter"

    def __init__(
        self,
        make: Callable[[], AbstractContextManager[Any]],
        *,
        log: Callable[[Any, Mapping[str, float], int | None], Any] | None = None,
    ) -> None:
        super().__init__()
        if not callable(make):
            raise TypeError(
                f"make must be callable, got {make!r}; pass a function that makes the context manager"
            )
        self._make = make
        self._send = log
        self._context: AbstractContextManager[Any] | None = None
        self.entered: Any = None

    def _open(self) -> None:
        context = self._make()
        self.entered = context.__enter__()
        self._context = context

    def _log(self, metrics: Mapping[str, float], step: int | None) -> None:
        if self._send is not None:
            self._send(self.entered, metrics, step)

    def _close(self, outcome: Outcome, exc: BaseException | None) -> None:
        context, self._context = self._context, None
        assert context is not None
        if exc is None and outcome.status != "FINISHED":
            exc = RuntimeError(f"the run failed: {outcome.cause}")
        context.__exit__(None if exc is None else type(exc), exc, None if exc is None else exc.__traceback__)


class ReporterGroup(Reporter):
    """Several reporters as one; each is told of the outcome, whatever happens to the others.

    SPMD:
        Rank-local: no communication.
        Called by: every rank; all but the main one do nothing.
        Result: none.
        Raises on: no rank, except the main one where closing fails and no process group is left.

    Args:
        reporters: the reporters.
    """

    name = "reporter group"

    def __init__(self, *reporters: Reporter) -> None:
        super().__init__()
        self.reporters = reporters

    def _open(self) -> None:
        for each in self.reporters:
            each.__enter__()

    def _log(self, metrics: Mapping[str, float], step: int | None) -> None:
        for each in self.reporters:
            each.log(metrics, step=step)

    def _close(self, outcome: Outcome, exc: BaseException | None) -> None:
        first: Exception | None = None
        for each in reversed(self.reporters):
            try:
                each.__exit__(None if exc is None else type(exc), exc, None)
            except Exception as failure:
                first = first or failure
        if first is not None:
            raise first
