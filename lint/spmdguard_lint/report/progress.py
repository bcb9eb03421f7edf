"""A progress bar on standard error, for runs that take long enough to wonder about."""

from __future__ import annotations

import time
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress

PATIENCE_S = 0.5


class ProgressBar:
    """Counts files; draws, and imports rich, only once a run has lasted ``PATIENCE_S``."""

    def __init__(self, *, colour: bool = True) -> None:
        self._colour = colour
        self._started = time.monotonic()
        self._label = ""
        self._total = 0
        self._done = 0
        self._bar: RichProgress | None = None

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def phase(self, label: str, total: int) -> None:
        """Begin to count ``total`` items, called ``label``."""
        self._label, self._total, self._done = label, total, 0
        if self._bar is not None:
            for task in self._bar.task_ids:
                self._bar.remove_task(task)
            self._bar.add_task(label, total=total or None)

    def advance(self, count: int = 1) -> None:
        """Count items done."""
        self._done += count
        if self._bar is not None:
            for task in self._bar.task_ids:
                self._bar.update(task, completed=self._done)
        elif time.monotonic() - self._started > PATIENCE_S:
            self._begin()

    def _begin(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        console = Console(stderr=True, no_color=not self._colour)
        what, bar = TextColumn("{task.description}"), BarColumn(bar_width=40)
        self._bar = Progress(
            what, bar, MofNCompleteColumn(), TimeElapsedColumn(), console=console, transient=True
        )
        self._bar.start()
        self._bar.add_task(self._label, total=self._total or None, completed=self._done)
