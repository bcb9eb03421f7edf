"""The order of a run: what happens at its end, after success, after a deferred error, and in an emergency.

with reporter (main rank only, for the whole life):
    try: train()
    except: write the primary error; destroy bounded, without a barrier; raise the original
    write a deferred error; barrier, which also tells who failed; destroy bounded
    ranks with a deferred error raise it; the main rank raises OtherRanksFailed or calls post_train
"""

from __future__ import annotations

import contextlib
import functools
import gc
import logging
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta
from types import TracebackType
from typing import Any, Literal, ParamSpec, TypeVar, overload

from spmdguard import stop
from spmdguard.current import PerProcess
from spmdguard.decorated import is_being_decorated
from spmdguard.deferred import defer, raise_if_deferred_error, store
from spmdguard.detach import free_locals
from spmdguard.errors import OtherRanksFailed, TeardownTimeout
from spmdguard.exitcodes import ExitCode
from spmdguard.format import add_note, format_exception_line
from spmdguard.group.exit import bound_interpreter_exit, end_now, end_process
from spmdguard.group.world import world
from spmdguard.meeting import share_failures
from spmdguard.primary import was_written, write_primary_error

__all__ = ["Run", "destroy_process_group", "run"]

_P = ParamSpec("_P")
_R = TypeVar("_R")
Reporter = AbstractContextManager[Any] | Callable[[], AbstractContextManager[Any]]
DEFAULT_TEARDOWN_TIMEOUT_S = 30.0
_NAME = "end of the run"

logger = logging.getLogger("spmdguard")
open_runs: PerProcess[list[Run]] = PerProcess(list)
"""Runs of this process that have begun and not ended, outermost first."""


def to_seconds(name: str, value: float | timedelta) -> float:
    """A positive duration in seconds."""
    seconds = value.total_seconds() if isinstance(value, timedelta) else float(value)
    if not seconds > 0:
        raise ValueError(f"{name} must be a positive number of seconds, got {value!r}")
    return seconds


def destroy_process_group(timeout: float | timedelta = DEFAULT_TEARDOWN_TIMEOUT_S) -> None:
    """Destroy all process groups of this process, waiting no longer than ``timeout``.

    SPMD:
        Collective: on some backends; may block where ranks come at different times.
        Called by: every rank, after its last collective.
        Result: none; does nothing without a process group.
        Raises on: the ranks on which it takes too long.

    Args:
        timeout: seconds.

    Raises:
        TeardownTimeout: it did not return; the process should end with ``os._exit``.
    """
    stop.forget_pending()
    world().destroy(to_seconds("timeout", timeout), emergency=False)


@overload
def run(
    train: Callable[[], _R],
    *,
    post_train: Callable[[], Any] | None = None,
    reporter: Reporter | None = None,
    teardown_timeout: float | timedelta = DEFAULT_TEARDOWN_TIMEOUT_S,
    exit_process: bool = False,
) -> _R: ...
@overload
def run(
    train: None = None,
    *,
    post_train: Callable[[], Any] | None = None,
    reporter: Reporter | None = None,
    teardown_timeout: float | timedelta = DEFAULT_TEARDOWN_TIMEOUT_S,
    exit_process: bool = False,
) -> Run: ...
def run(
    train: Callable[[], Any] | None = None,
    *,
    post_train: Callable[[], Any] | None = None,
    reporter: Reporter | None = None,
    teardown_timeout: float | timedelta = DEFAULT_TEARDOWN_TIMEOUT_S,
    exit_process: bool = False,
) -> Any:
    """Run training so that it ends the right way on every rank, whatever fails.

    Three forms: ``run(train)``, ``with run(): ...``, and ``@run()`` above a function; ``@run`` without
    parentheses above a function of a module raises ``TypeError`` before anything runs.

    After ``train`` returns, all ranks meet once and tell each other who holds a deferred error; the process
    group is destroyed; the ranks that hold one raise it, and the main rank calls ``post_train`` only where no
    rank failed. When ``train`` raises, its error is written at once, the group is destroyed without a
    barrier, and the error is raised; the locals of its frames are freed before, because a model or group
    among them would keep the connections open for which the other ranks wait. A teardown that does not
    return ends the process with ``ExitCode.TEARDOWN_HUNG`` or ``ExitCode.FAILED_AND_TEARDOWN_HUNG``.

    SPMD:
        Collective: what ``train`` does, then one agreement and ``destroy_process_group``.
        Called by: every rank.
        Result: what ``train`` returns.
        Raises on: the ranks on which something failed, and the main rank where any rank failed.

    Args:
        train: the training; it may create the process group itself.
        post_train: work of the main rank after the group is destroyed (upload, export).
        reporter: a context manager, or a function that makes one, entered on the main rank only for the
            whole life of the run and told of its failure; its own errors are deferred.
        teardown_timeout: seconds that destroying the process group may take.
        exit_process: end the process at the end of the run with flushed streams, without the interpreter's
            finalisation, in which gloo now and then aborts (SIGABRT) after all work is done.

    Returns:
        What ``train`` returns, or a ``Run`` where ``train`` is None.

    Raises:
        Exception: what ``train`` or ``post_train`` raised, or this rank's deferred error.
        OtherRanksFailed: on the main rank, where only other ranks hold a deferred error.
    """
    guarded = Run(
        post_train=post_train,
        reporter=reporter,
        teardown_timeout=teardown_timeout,
        exit_process=exit_process,
    )
    if train is None:
        return guarded
    if not callable(train):
        raise TypeError(f"train must be callable, got {train!r}; pass the function, not its result")
    if is_being_decorated(train):
        raise TypeError(
            f"`@run` above `{getattr(train, '__name__', train)}` would run it where it is defined: "
            "write `@run()`, with parentheses"
        )
    with guarded:
        return train()


class Run:
    """One guarded run, as a context manager and as a decorator; made by ``run()``.

    SPMD:
        Collective: see ``run``.
        Called by: every rank.
        Result: none.
        Raises on: see ``run``.
    """

    def __init__(
        self,
        *,
        post_train: Callable[[], Any] | None = None,
        reporter: Reporter | None = None,
        teardown_timeout: float | timedelta = DEFAULT_TEARDOWN_TIMEOUT_S,
        exit_process: bool = False,
    ) -> None:
        if post_train is not None and not callable(post_train):
            raise TypeError(f"post_train must be callable, got {post_train!r}")
        self._post_train = post_train
        self._reporter = reporter
        self._timeout_s = to_seconds("teardown_timeout", teardown_timeout)
        self._exit_process = exit_process
        self._entered: AbstractContextManager[Any] | None = None

    def __call__(self, fn: Callable[_P, _R]) -> Callable[_P, _R]:
        """Decorate ``fn``: every call of it is a run.

        SPMD:
            Collective: see ``run``.
            Called by: every rank.
            Result: what ``fn`` returns.
            Raises on: see ``run``.
        """

        @functools.wraps(fn)
        def guarded(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            with self:
                return fn(*args, **kwargs)

        return guarded

    def __enter__(self) -> Run:
        self._entered = None
        open_runs().append(self)
        if self._reporter is not None and world().rank() == 0:
            try:
                made = (
                    self._reporter if isinstance(self._reporter, AbstractContextManager) else self._reporter()
                )
                made.__enter__()
                self._entered = made
            except Exception as exc:
                failure = exc
            else:
                return self
            defer(failure, "reporter", None)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> Literal[False]:
        try:
            return self._end(exc)
        finally:
            with contextlib.suppress(ValueError):
                open_runs().remove(self)

    def _end(self, exc: BaseException | None) -> Literal[False]:
        final = exc
        if final is None:
            try:
                self._end_controlled()
            except BaseException as failure:
                final = failure
        else:
            self._end_in_emergency(final)
        final = self.leave_reporter(final)
        if self._exit_process:
            end_process(final, shown=final is not None and was_written(final))
        if final is not None and final is not exc:
            try:
                raise final
            finally:
                del final
        return False

    def _end_controlled(self) -> None:
        """Meet, destroy, then raise or post-process."""
        kept = store()
        own = kept.first
        if own is not None:
            write_primary_error(own, since=kept.since, leaving=False)
        try:
            stop.drain()
            failures = share_failures(_NAME, "" if own is None else format_exception_line(own))
        except Exception as failure:
            self._end_in_emergency(failure)
            raise
        self._destroy(failed=bool(failures), emergency=False)
        raise_if_deferred_error()
        if world().rank() != 0:
            return
        if failures:
            error = OtherRanksFailed(failures=failures, place=f"{_NAME}; post_train was skipped")
            write_primary_error(error)
            raise error
        if self._post_train is not None:
            try:
                self._post_train()
                raise_if_deferred_error()
            except Exception as failure:
                write_primary_error(failure)
                raise

    def _end_in_emergency(self, exc: BaseException) -> None:
        """Write the primary error, then destroy without a barrier; never raises."""
        deferred = store().first
        if deferred is not None and deferred is not exc:
            add_note(exc, f"spmdguard: this rank had deferred before: {format_exception_line(deferred)}")
        if not isinstance(exc, SystemExit) or exc.code not in (None, 0):
            write_primary_error(exc)
        stop.forget_pending()
        free_locals(exc)
        gc.collect()
        with contextlib.suppress(Exception):
            self._destroy(failed=True, emergency=True)
        bound_interpreter_exit(self._timeout_s)

    def _destroy(self, *, failed: bool, emergency: bool) -> None:
        """Destroy in bounded time; end the process where it does not return."""
        try:
            world().destroy(self._timeout_s, emergency=emergency)
        except TeardownTimeout as hung:
            sys.stderr.write(f"spmdguard: {hung}\n")
            self.leave_reporter(hung)
            end_now(ExitCode.FAILED_AND_TEARDOWN_HUNG if failed else ExitCode.TEARDOWN_HUNG)

    def leave_reporter(self, final: BaseException | None) -> BaseException | None:
        """Tell the reporter how it ended; its own error counts only where nothing else failed."""
        entered, self._entered = self._entered, None
        if entered is None:
            return final
        try:
            if final is None:
                entered.__exit__(None, None, None)
            else:
                entered.__exit__(type(final), final, final.__traceback__)
        except Exception as failure:
            if failure is final:
                return final
            logger.exception("the reporter failed while it was closed")
            if final is None:
                write_primary_error(failure)
                return failure
        return final
