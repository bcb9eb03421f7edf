"""``fail_fast``: what cannot be recovered ends this process at once, instead of one rank limping on.

Order: the error is written (stderr, torchelastic's file, the store); what memory is in use is added; open
communication is torn down in bounded time; open runs tell their reporters in bounded time; ``os._exit``.
Nothing waits for other ranks: they lose their partner at once and learn the cause from the store.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
from collections.abc import Callable
from datetime import timedelta
from types import TracebackType
from typing import Any, Literal, NoReturn, ParamSpec, TypeVar, overload

from spmdguard.current import simulated_values
from spmdguard.decorated import kind_of
from spmdguard.driving import decorate_resumed
from spmdguard.exitcodes import ExitCode
from spmdguard.format import format_error, format_exception_line, short_path
from spmdguard.group.bounded import call_bounded
from spmdguard.group.exit import end_now
from spmdguard.group.world import world
from spmdguard.lifecycle import open_runs, to_seconds
from spmdguard.memory import advise, describe_memory, is_out_of_memory
from spmdguard.primary import was_written, write_primary_error

__all__ = ["FailFast", "fail_fast"]

_P = ParamSpec("_P")
_R = TypeVar("_R")
Errors = type[BaseException] | tuple[type[BaseException], ...] | Literal["out of memory"]
DEFAULT_TIMEOUT_S = 10.0
_ending = threading.Lock()


@overload
def fail_fast(fn: Callable[_P, _R], /) -> Callable[_P, _R]: ...
@overload
def fail_fast(*, errors: Errors = Exception, timeout: float | timedelta = DEFAULT_TIMEOUT_S) -> FailFast: ...
def fail_fast(
    fn: Callable[..., Any] | None = None,
    /,
    *,
    errors: Errors = Exception,
    timeout: float | timedelta = DEFAULT_TIMEOUT_S,
) -> Any:
    """End this process at once where an error cannot be recovered: no barrier, no cleaning up by chance.

    Three forms: ``@fail_fast`` above a function, ``with fail_fast(): ...``, and ``fail_fast().install()`` for
    whatever leaves the main thread, another thread, or (``install(loop)``) a task of an event loop. An
    exhausted device, above all, must not be caught on one rank to go on with a smaller batch: the others are
    in a collective that this rank will never come to.

    SPMD:
        Rank-local: no communication; tears down this rank's groups in bounded time.
        Called by: any rank.
        Result: what the function returns.
        Raises on: no rank: an error of ``errors`` ends the process with ``ExitCode.OUT_OF_MEMORY`` where memory
            is exhausted, else ``ExitCode.FAILED_FAST``. Other exceptions pass.

    Args:
        fn: the function, where the decorator is used without arguments.
        errors: which exceptions; ``"out of memory"`` takes those of torch and of the host. ``SystemExit`` and
            ``KeyboardInterrupt`` only where they are named.
        timeout: seconds that tearing down, and telling reporters, may take each.

    Returns:
        The decorated function, or a ``FailFast``.

    Raises:
        TypeError: ``errors`` is something else.
    """
    guard = FailFast(errors=errors, timeout=timeout)
    return guard if fn is None else guard(fn)


class FailFast:
    """Made by ``fail_fast()``: a decorator, a context manager, and hooks.

    SPMD:
        Rank-local: see ``fail_fast``.
        Called by: any rank.
        Result: none.
        Raises on: no rank.
    """

    default = None

    def __init__(self, *, errors: Errors = Exception, timeout: float | timedelta = DEFAULT_TIMEOUT_S) -> None:
        kinds = errors if isinstance(errors, tuple) else (errors,)
        if errors != "out of memory" and not all(
            isinstance(kind, type) and issubclass(kind, BaseException) for kind in kinds
        ):
            raise TypeError(f'errors must be exception classes or "out of memory", got {errors!r}')
        self._errors = errors
        self._timeout_s = to_seconds("timeout", timeout)
        self._hooks: list[Callable[[], None]] = []

    def matches(self, exc: BaseException | None) -> bool:
        """Whether ``exc`` ends the process here."""
        if exc is None:
            return False
        return is_out_of_memory(exc) if self._errors == "out of memory" else isinstance(exc, self._errors)

    def __call__(self, fn: Callable[_P, _R]) -> Callable[_P, _R]:
        """Decorate a function, coroutine function or generator.

        SPMD:
            Rank-local: see ``fail_fast``.
            Called by: any rank.
            Result: what ``fn`` returns.
            Raises on: what ``errors`` does not name.
        """
        kind = kind_of(fn, "fail_fast")
        if kind != "function":
            return decorate_resumed(fn, self, kind)

        @functools.wraps(fn)
        def guarded(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            with self:
                return fn(*args, **kwargs)

        return guarded

    def __enter__(self) -> FailFast:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> Literal[False]:
        if self.matches(exc):
            assert exc is not None
            self.end(exc)
        return False

    def begin(self) -> bool:
        """For work that is resumed: it runs on every rank."""
        return True

    def step(self, run: Callable[..., Any], *args: Any) -> Any:
        """For work that is resumed: one piece."""
        return run(*args)

    def settle(self, exc: BaseException) -> Any:
        """For work that is resumed: end the process, or raise."""
        if self.matches(exc):
            self.end(exc)
        raise exc

    def end(self, exc: BaseException) -> NoReturn:
        """End this process because of ``exc``.

        SPMD:
            Rank-local: see ``fail_fast``.
            Called by: any rank, from any thread; where another thread is already ending it, this one waits.
            Result: never returns.
            Raises on: no rank.
        """
        if simulated_values() is None:
            _ending.acquire()  # kept: whoever comes second ends with the process
        code = ExitCode.OUT_OF_MEMORY if is_out_of_memory(exc) else ExitCode.FAILED_FAST
        with contextlib.suppress(Exception):
            write_primary_error(exc)
        with contextlib.suppress(Exception):
            sys.stderr.write(f"spmdguard: {_describe(exc, code)}\n")
            sys.stderr.flush()
        with contextlib.suppress(Exception):
            world().destroy(self._timeout_s, emergency=True)
        for run in reversed(open_runs()):
            tell = functools.partial(run.leave_reporter, exc)
            with contextlib.suppress(Exception):
                call_bounded(tell, self._timeout_s, "reporter") if simulated_values() is None else tell()
        end_now(code)

    def install(self, loop: Any = None) -> FailFast:
        """Do the same for what leaves the main thread or another thread, and for tasks of an event loop.

        SPMD:
            Rank-local: no communication.
            Called by: every rank, once, at the beginning.
            Result: itself; ``uninstall`` puts the earlier hooks back.
            Raises on: no rank.

        Args:
            loop: an asyncio event loop; the error of a task that nobody awaits ends the process.
        """
        self._hook_main()
        self._hook_threads()
        if loop is not None:
            before = loop.get_exception_handler()
            loop.set_exception_handler(self._handle_in_loop)
            self._hooks.append(lambda: loop.set_exception_handler(before))
        return self

    def uninstall(self) -> None:
        """Put the earlier hooks back.

        SPMD:
            Rank-local: no communication.
            Called by: any rank.
            Result: none.
            Raises on: no rank.
        """
        while self._hooks:
            self._hooks.pop()()

    def _hook_main(self) -> None:
        before, stderr = sys.excepthook, sys.stderr

        def hook(kind: type[BaseException], exc: BaseException, traceback: TracebackType | None) -> None:
            if self.matches(exc) and not was_written(exc):  # a run that has ended has torn down already
                sys.stderr = stderr  # torch's own hook around this one collects what is written
                self.end(exc)
            before(kind, exc, traceback)

        sys.excepthook = hook
        self._hooks.append(lambda: setattr(sys, "excepthook", before))

    def _hook_threads(self) -> None:
        before = threading.excepthook

        def hook(args: Any) -> None:
            if self.matches(args.exc_value):
                self.end(args.exc_value)
            before(args)

        threading.excepthook = hook
        self._hooks.append(lambda: setattr(threading, "excepthook", before))

    def _handle_in_loop(self, loop: Any, context: dict[str, Any]) -> None:
        exc: BaseException | None = context.get("exception")
        if exc is not None and self.matches(exc):
            self.end(exc)
        loop.default_exception_handler(context)


def _describe(exc: BaseException, code: ExitCode) -> str:
    first = format_exception_line(exc).splitlines()[0]
    title = f"rank {world().rank()} ends at once with exit code {int(code)} ({code.name}): {first}"
    if code != ExitCode.OUT_OF_MEMORY:
        return title
    traceback = exc.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    where = "" if traceback is None else _place(traceback)
    return format_error(title, saw=describe_memory(), where=where, do=advise(exc))


def _place(traceback: TracebackType) -> str:
    code = traceback.tb_frame.f_code
    return f"{short_path(code.co_filename)}:{traceback.tb_lineno} in {code.co_name}"
