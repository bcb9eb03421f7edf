"""``strict_mode``: report what runs undecorated, so that classification becomes a discipline.

Terms: a *sighting* is one place in the user's code with what happened there and how often. A collective is
*undecorated* outside of every ``@collective``. Main-only work is *undecorated* where a file is written, a
connection or a process opened outside of rank-local work at a place that only some ranks came to.
"""

from __future__ import annotations

import functools
import json
import logging
import os
import sys
import sysconfig
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal, ParamSpec, TypeVar

from spmdguard import region
from spmdguard.errors import UndecoratedWork
from spmdguard.format import format_place, is_library_file, name_ranks
from spmdguard.group import guard
from spmdguard.group.record import seeing_collectives
from spmdguard.group.world import world
from spmdguard.latch import latch
from spmdguard.meeting import check_may_meet, meet

__all__ = ["Sighting", "StrictReport", "strict_mode"]

_P = ParamSpec("_P")
_R = TypeVar("_R")
_NAME = "strict_mode"
_PACKAGE = os.path.dirname(__file__) + os.sep  # noqa: PTH120 - compared with code's file names
_TRANSPARENT = frozenset({__file__, guard.__file__})
"""Our own files that stand between the user's call and what is seen."""
_INSTALLED = tuple(f"{sysconfig.get_path(name)}{os.sep}" for name in ("stdlib", "purelib", "platlib"))
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_EVENTS = frozenset(
    {
        "os.mkdir",
        "os.rename",
        "os.remove",
        "os.rmdir",
        "os.link",
        "os.symlink",
        "os.truncate",
        "os.system",
        "os.posix_spawn",
        "shutil.copyfile",
        "shutil.rmtree",
        "socket.connect",
        "subprocess.Popen",
    }
)
logger = logging.getLogger("spmdguard")


@dataclass(frozen=True)
class Sighting:
    """What was seen at one place of the user's code.

    SPMD:
        Rank-local: plain data.
        Called by: any rank.
        Result: rank-invariant where the report was compared.
        Raises on: no rank.
    """

    what: str
    place: str
    counts: dict[int, int]
    """How often, by rank."""

    def __str__(self) -> str:
        times = sorted(set(self.counts.values()))
        often = f"{times[0]}" if len(times) == 1 else f"{times[0]}-{times[-1]}"
        return f"{self.what} at {self.place}: {often} time{'' if often == '1' else 's'} on {name_ranks(self.counts)}"


class StrictReport:
    """What ``strict_mode`` saw; complete when its block has ended.

    SPMD:
        Rank-local: plain data.
        Called by: any rank.
        Result: rank-invariant where ``compared`` is true.
        Raises on: no rank.
    """

    def __init__(self) -> None:
        self.collectives: tuple[Sighting, ...] = ()
        """Collectives outside of every ``@collective``."""
        self.main_only: tuple[Sighting, ...] = ()
        """Side effects outside of rank-local work, at places that only some ranks came to."""
        self.compared = False
        """Whether the ranks told each other what they saw; without that, ``main_only`` is this rank's own."""

    def __bool__(self) -> bool:
        """Whether anything was seen."""
        return bool(self.collectives or self.main_only)

    def __str__(self) -> str:
        lines = [f"undecorated collective: {each}" for each in self.collectives]
        lines += [f"undecorated work of some ranks: {each}" for each in self.main_only]
        return "\n".join(lines) or "everything is decorated"


class strict_mode(AbstractContextManager[StrictReport]):
    """Report undecorated collectives, and undecorated work of single ranks, with counts and places.

    A block or a decorator, for a short run while code is being classified: it slows every operator down.
    It sees the calling thread. Put it inside ``run()``, so that the group still exists when it ends.

    SPMD:
        Collective: at the end of the block, one exchange of texts, unless an exception leaves it.
        Called by: every rank, in the same order.
        Result: rank-invariant, but for a block that an exception leaves.
        Raises on: every rank alike, with ``error=True``.

    Args:
        error: raise ``UndecoratedWork`` at the end of the block where anything was seen.

    Raises:
        UndecoratedWork: something was seen, and ``error`` is true.
    """

    def __init__(self, *, error: bool = False) -> None:
        self._error = error
        self.report = StrictReport()

    def __call__(self, fn: Callable[_P, _R]) -> Callable[_P, _R]:
        """Decorate ``fn``: every call of it is watched anew.

        SPMD:
            Collective: see ``strict_mode``.
            Called by: every rank.
            Result: what ``fn`` returns.
            Raises on: see ``strict_mode``.
        """

        @functools.wraps(fn)
        def watched(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            with strict_mode(error=self._error) as self.report:
                return fn(*args, **kwargs)

        return watched

    def __enter__(self) -> StrictReport:
        if _thread.seen is not None:
            raise RuntimeError("strict_mode is on already on this thread")
        self.report = StrictReport()
        _install_hook()
        _thread.seen = Counter()
        self._recording = seeing_collectives(_see_collective)
        self._recording.__enter__()
        return self.report

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> Literal[False]:
        self._recording.__exit__(None, None, None)
        seen, _thread.seen = _thread.seen, None
        assert seen is not None
        by_rank = {world().rank(): [[*key, count] for key, count in seen.items()]}
        channel = world().channel() if exc is None else None
        if channel is not None:
            check_may_meet(_NAME)
            latch().num_begun += 1
            told = json.dumps(by_rank[channel.rank])
            texts = meet(_NAME, channel, lambda: channel.gather_texts(told))
            by_rank = {rank: json.loads(text) for rank, text in zip(channel.ranks, texts, strict=True)}
            self.report.compared = True
        _sum_up(self.report, by_rank)
        if self.report and world().rank() == 0:
            logger.warning("strict mode:\n%s", self.report)
        if self.report and self._error and exc is None:
            raise UndecoratedWork(
                collectives=[str(each) for each in self.report.collectives],
                main_only=[str(each) for each in self.report.main_only],
            )
        return False


class _Thread(threading.local):
    seen: Counter[tuple[str, str, str]] | None = None


_thread = _Thread()
_installed = threading.Lock()


def _sum_up(report: StrictReport, by_rank: dict[int, list[Any]]) -> None:
    counts: dict[tuple[str, str, str], dict[int, int]] = {}
    for rank, sightings in by_rank.items():
        for kind, what, place, count in sightings:
            counts.setdefault((kind, what, place), {})[rank] = count
    found = {key: Sighting(key[1], key[2], ranks) for key, ranks in sorted(counts.items())}
    report.collectives = tuple(each for key, each in found.items() if key[0] == "collective")
    report.main_only = tuple(
        each
        for key, each in found.items()
        if key[0] == "effect" and (len(each.counts) < len(by_rank) or len(by_rank) == 1)
    )


def _see_collective(operation: str) -> None:
    if not region.thread.collectives and not region.thread.regions:
        _note("collective", operation)


def _install_hook() -> None:
    """Once a process: an audit hook cannot be taken out again; without a block it returns at once."""
    if _installed.acquire(blocking=False):
        sys.addaudithook(_hear)


def _hear(event: str, arguments: tuple[Any, ...]) -> None:
    if _thread.seen is None:
        return
    if event == "open":
        path, mode, flags = arguments
        writes = any(letter in mode for letter in "wax+") if isinstance(mode, str) else flags & _WRITES
        if not writes or str(path).endswith(".pyc"):
            return
    elif event not in _EVENTS:
        return
    if not region.thread.regions and not region.thread.collectives:
        _note("effect", event)


def _is_library(filename: str) -> bool:
    """Whether a file is no part of the user's project: installed packages and Python's own."""
    return filename.startswith(_INSTALLED) or is_library_file(filename)


def _note(kind: str, what: str) -> None:
    """Count it at the user's line, unless this package is doing it on the user's behalf."""
    frame: Any = sys._getframe(2)
    while frame is not None and _is_library(frame.f_code.co_filename):
        name = frame.f_code.co_filename
        if name.startswith("<frozen importlib"):
            return  # an import that keeps its bytecode
        if name.startswith(_PACKAGE) and name not in _TRANSPARENT and "record" not in name:
            return
        frame = frame.f_back
    seen = _thread.seen
    if frame is not None and seen is not None:
        _thread.seen = None  # what is done here is not the user's
        seen[(kind, what, format_place(frame))] += 1
        _thread.seen = seen
