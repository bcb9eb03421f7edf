"""``SimulatedWorld``: run a function on N simulated ranks in one process, in an order chosen by a seed."""

from __future__ import annotations

import contextlib
import importlib.util
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any, ParamSpec, TypeVar

from spmdguard.clock import clock as clock_of_process
from spmdguard.current import PerProcess, simulated_process
from spmdguard.format import add_note, format_exception_line, name_ranks
from spmdguard.group.world import world as world_of_process
from spmdguard.testing.clocks import RankClock
from spmdguard.testing.environment import per_rank_environment
from spmdguard.testing.faults import Fault, FaultPlan
from spmdguard.testing.helpers import helpers_belong_to_ranks
from spmdguard.testing.lines import watch_lines
from spmdguard.testing.matching import Group
from spmdguard.testing.meetings import DEFAULT_GROUP, Meetings
from spmdguard.testing.ranks import Outcome, RankKilled, SimulatedRank, thread
from spmdguard.testing.simulated import RankWorld
from spmdguard.testing.sites import find_site

_P = ParamSpec("_P")
_R = TypeVar("_R")


class SimulatedWorld:
    """N ranks in one process, one running at a time, in an order that ``seed`` decides.

    Inside ``run``, torch.distributed and this package answer per rank, and ranks that do not make the same
    collectives in the same order get ``CollectiveMismatch`` at once, never a timeout.

    Args:
        ranks: how many.
        seed: the schedule; the same seed gives the same schedule.
        initialized: whether the default process group exists when the function begins; pass False to test
            code that calls ``init_process_group`` itself.
        torch: whether to simulate torch.distributed; None does where torch is installed.

    Raises:
        ValueError: ``ranks`` is below 1, or torch is asked for and not installed.
    """

    def __init__(
        self, ranks: int = 4, seed: int = 0, *, initialized: bool = True, torch: bool | None = None
    ) -> None:
        if ranks < 1:
            raise ValueError(f"ranks must be at least 1, got {ranks!r}")
        installed = _is_installed("torch")
        if torch and not installed:
            raise ValueError("torch=True was given, but torch is not installed")
        self.ranks = ranks
        self.seed = seed
        self._initialized = initialized
        self._torch = installed if torch is None else torch
        self._faults = FaultPlan(ranks)

    def fail(self, rank: int, *, at: str | None = None, nth: int = 1, error: BaseException) -> None:
        """Raise ``error`` on ``rank`` in place of its ``nth`` operation ``at`` (any operation without it)."""
        if not isinstance(error, BaseException):
            raise TypeError(f"error must be an exception object, got {error!r}")
        self._faults.add(Fault("fail", rank, at, nth, error=error))

    def kill(self, rank: int, *, at: str | None = None, nth: int = 1) -> None:
        """Stop ``rank`` for good where it would begin its ``nth`` operation ``at``, as ``kill -9`` does.

        Its ``finally`` blocks run after all other ranks have ended; nothing they do is seen by them.
        """
        self._faults.add(Fault("kill", rank, at, nth))

    def delay(self, rank: int, *, at: str | None = None, nth: int = 1, turns: int = 10) -> None:
        """Keep ``rank`` from its ``nth`` operation ``at`` until ``turns`` others ran, or nobody else can."""
        self._faults.add(Fault("delay", rank, at, nth, num_turns=turns))

    def signal(self, rank: int, number: int, *, at: str | None = None, nth: int = 1) -> None:
        """Let a signal reach ``rank`` there; without ``stop_on_signal`` for it, the rank is killed."""
        self._faults.add(Fault("signal", rank, at, nth, signal=int(number)))

    def advance(self, rank: int, *, seconds: float, at: str | None = None, nth: int = 1) -> None:
        """Move the clock of ``rank`` forward there; ``stop_after`` and waiting for files go by that clock."""
        self._faults.add(Fault("advance", rank, at, nth, seconds=float(seconds)))

    def run(self, fn: Callable[_P, _R], /, *args: _P.args, **kwargs: _P.kwargs) -> list[_R]:
        """Run ``fn`` on every rank; its results by rank.

        Raises:
            CollectiveMismatch: ranks parted ways, also where a rank swallowed it; caused by the error of a
                rank that ended before.
            BaseException: the first error of a rank where they did not part ways, or where it is an
                ``AssertionError`` or a test runner's skip or failure; with a note naming rank and seed.
        """
        __tracebackhide__ = True  # pytest shows the ranks' frames, not these
        meetings = self._simulate(fn, args, kwargs)
        mismatch = meetings.mismatch
        failed = [rank for rank in meetings.ended if rank.error is not None]
        first = next(iter(failed if mismatch is None else meetings.failed_before), None)
        if mismatch is not None and (first is None or not _is_verdict(first.error)):
            raise mismatch.again() from (None if first is None else first.error)
        if first is None:
            return [rank.result for rank in meetings.ranks]
        assert first.error is not None
        others = [rank.number for rank in failed if rank is not first]
        note = f"spmdguard: raised by simulated rank {first.number}, seed {self.seed}"
        add_note(first.error, f"{note}; {name_ranks(others)} failed too" if others else note)
        raise first.error

    def outcomes(self, fn: Callable[_P, Any], /, *args: _P.args, **kwargs: _P.kwargs) -> list[Outcome]:
        """Run ``fn`` on every rank; how each of them ended, without raising."""
        return [rank.outcome() for rank in self._simulate(fn, args, kwargs).ranks]

    def _simulate(self, fn: Callable[..., Any], args: Any, kwargs: Any) -> Meetings:
        if thread.rank is not None:
            raise RuntimeError("a simulated rank cannot simulate a world itself")
        if not callable(fn):
            raise TypeError(f"fn must be callable, got {fn!r}; pass the function, not its result")
        meetings = Meetings(self.ranks, self.seed, self._faults)
        with contextlib.ExitStack() as stack:
            start = stack.enter_context(_backend(self, meetings))
            stack.enter_context(per_rank_environment(self.ranks))
            stack.enter_context(helpers_belong_to_ranks())
            threads = [
                threading.Thread(
                    target=_live,
                    args=(meetings, rank, start, fn, args, kwargs),
                    name=f"simulated rank {rank.number}",
                    daemon=True,
                )
                for rank in meetings.ranks
            ]
            for each in threads:
                each.start()
            meetings.scheduler.run()
            _unwind_killed(meetings, threads)
        for text in meetings.missed_faults():
            warnings.warn(text, stacklevel=3)
        return meetings


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ImportError:
        return False


def _is_verdict(error: BaseException | None) -> bool:
    """Whether an error is the test's own verdict rather than a failure of the code under test."""
    return isinstance(error, AssertionError) or not isinstance(error, Exception)


Start = Callable[[SimulatedRank], dict[PerProcess[Any], Any]]


@contextlib.contextmanager
def _backend(simulated: SimulatedWorld, meetings: Meetings) -> Iterator[Start]:
    """With or without torch; yields what a rank's thread calls first."""
    if simulated._torch:
        from spmdguard.testing import torch_world

        simulation = torch_world.TorchSimulation(meetings)
        with (
            simulation.installed(),
            torch_world.random_state_per_rank(meetings),
            torch_world.one_thread_per_rank(),
        ):

            def start_with_torch(me: SimulatedRank) -> dict[PerProcess[Any], Any]:
                simulation.start_rank(me, initialized=simulated._initialized)
                return {world_of_process: RankWorld(meetings, me, None)}

            yield start_with_torch
        return
    alone = Group(range(simulated.ranks), DEFAULT_GROUP)
    meetings.groups["default"] = alone
    yield lambda me: {world_of_process: RankWorld(meetings, me, alone)}


def _live(
    meetings: Meetings, me: SimulatedRank, start: Start, fn: Callable[..., Any], args: Any, kwargs: Any
) -> None:
    """The life of one simulated rank, on its thread."""
    me.lock.acquire()
    thread.rank = me
    me.processor.pin()
    if meetings.scheduler.restore is not None:
        meetings.scheduler.restore(me)
    try:
        me.values.update(start(me))
        me.values[clock_of_process] = RankClock(meetings, me)
        with simulated_process(me.values):
            watch_lines(meetings, me)
            me.result = fn(*args, **kwargs)
        me.ending = "returned"
    except RankKilled:
        return
    except SystemExit as exc:
        me.error = exc if exc.code not in (None, 0) else None
        me.ending = f"exited with {exc.code!r}"
    except BaseException as exc:
        me.error = exc
        me.ending = f"raised {format_exception_line(exc).splitlines()[0]}"
    finally:
        sys.settrace(None)
    me.state = "ended"
    meetings.ended.append(me)
    meetings.scheduler.end(me)


def _unwind_killed(meetings: Meetings, threads: list[threading.Thread]) -> None:
    """Let the threads of killed ranks end, one after the other."""
    for rank, thread_of_rank in zip(meetings.ranks, threads, strict=True):
        if rank.state == "killed":
            rank.is_over = True
            rank.lock.release()
        thread_of_rank.join()


def fault_point(name: str) -> None:
    """A place where ``SimulatedWorld.fail``, ``kill`` and ``delay`` can strike; nothing outside simulations.

    SPMD:
        Rank-local: no communication.
        Called by: any rank, anywhere.
        Result: none.
        Raises on: the simulated rank for which a fault is planned here.

    Args:
        name: what ``at=`` names.
    """
    me = thread.rank
    if me is None:
        return
    meetings = me.values[world_of_process].meetings
    meetings.strike(me, find_site(), name)
