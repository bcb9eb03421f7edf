"""Leave the process: at once with flushed streams, or normally but in bounded time.

gloo processes now and then abort (SIGABRT, "terminate called without an active exception") while the
interpreter is finalised, after all work is done (torch 2.13). ``end_process`` does not finalise.
"""

from __future__ import annotations

import atexit
import contextlib
import faulthandler
import logging
import os
import sys
from typing import NoReturn

from spmdguard.current import simulated_values
from spmdguard.format import format_traceback

_bound = False


def end_now(code: int) -> NoReturn:
    """Flush the streams and the log, and end the process with ``code``; no finalisation, no ``atexit``.

    A simulated rank ends with ``SystemExit`` instead, so that the process that simulates it lives on.
    """
    if simulated_values() is not None:
        raise SystemExit(int(code))
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    with contextlib.suppress(Exception):
        logging.shutdown()
    os._exit(code)


def exit_code_of(exc: BaseException | None) -> int:
    """The code Python itself would exit with after ``exc`` left the program."""
    if exc is None:
        return 0
    if isinstance(exc, SystemExit):
        if exc.code is None:
            return 0
        return exc.code & 0xFF if isinstance(exc.code, int) else 1
    return 130 if isinstance(exc, KeyboardInterrupt) else 1


def end_process(exc: BaseException | None, *, shown: bool) -> NoReturn:
    """End the process the way Python would after ``exc``; ``shown`` where its traceback was written."""
    if exc is not None and not shown and not isinstance(exc, SystemExit):
        sys.stderr.write(format_traceback(exc))
    if isinstance(exc, SystemExit) and isinstance(exc.code, str):
        sys.stderr.write(f"{exc.code}\n")
    if simulated_values() is None:
        with contextlib.suppress(Exception):
            atexit._run_exitfuncs()
    end_now(exit_code_of(exc))


class UnfinalisedExit:
    """Ends the process after every ``atexit`` function and without finalisation, once ``code`` is set.

    Finalising an interpreter that holds a compiler takes a second of CPU time, for which other ranks wait. To come
    last it is made before the program imports anything.
    """

    def __init__(self) -> None:
        self.code: int | None = None
        atexit.register(self._end)

    def _end(self) -> None:
        if self.code is not None:
            end_now(self.code)


def bound_interpreter_exit(timeout_s: float) -> None:
    """After a failure, let the interpreter's exit take no longer than ``timeout_s``, then exit with 1.

    A C thread of ``faulthandler`` does it, because no Python thread runs while the interpreter is finalised.
    """
    global _bound
    if _bound or simulated_values() is not None:
        return
    _bound = True

    def start() -> None:
        with contextlib.suppress(Exception):
            faulthandler.dump_traceback_later(timeout_s, exit=True)

    atexit.register(start)
