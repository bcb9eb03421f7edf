"""torchrun, with one plain line and the usual exit code where a signal ends it; ``python -m`` this module.

torchrun hands a signal on to its ranks, waits until they have ended, and then shows the traceback of an exception of
its own, as if something had failed. Everything else stays as torchrun has it: arguments, summary of failures, codes.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from spmdguard.format import without_first_frames
from spmdguard.group.torch_access import run_torchrun

_ENDING = ("Received %s death signal", "Sending process %s closing signal %s")
_LOGGERS = (
    "torch.distributed.elastic.agent.server.api",
    "torch.distributed.elastic.multiprocessing.api",
)
_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT")


def torchrun_command(arguments: Sequence[str]) -> int:
    """Run torchrun in this process.

    Returns:
        0, 1 where ranks failed, or 128 and the number of the signal that ended the run.
    """
    _keep_quiet_about_signals()
    try:
        number = run_torchrun(arguments)
    except Exception as failure:
        shown = failure.with_traceback(without_first_frames(failure.__traceback__))
        sys.excepthook(type(shown), shown, shown.__traceback__)
        return 1
    return 0 if number is None else _tell(number)


def _keep_quiet_about_signals() -> None:
    """Drop what torchrun logs of a signal that it was sent, a line for each rank; of failed ranks it logs the same."""
    asked = False

    def keep(record: logging.LogRecord) -> bool:
        nonlocal asked
        text = str(record.msg)
        asked = asked or text.startswith(_ENDING[0])
        return not (asked and text.startswith(_ENDING))

    for name in _LOGGERS:
        logging.getLogger(name).addFilter(keep)


def _tell(number: int) -> int:
    for name in _SIGNALS:  # one more of them changes nothing now
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    for pid in _ranks_left():
        with suppress(OSError):
            os.killpg(pid, signal.SIGKILL)
    name = signal.Signals(number).name
    how = "interrupted (SIGINT)" if number == signal.SIGINT else f"ended by {name}"
    with suppress(OSError):  # the terminal may be gone
        print(f"spmdguard: the run was {how}; all ranks have ended", file=sys.stderr, flush=True)
    return 128 + number


def _ranks_left() -> Iterator[int]:
    """Child processes that lead a session of their own, as ranks do: those for which torchrun did not wait."""
    for each in Path("/proc/self/task").glob("*/children"):
        with suppress(OSError):
            yield from (pid for pid in map(int, each.read_text().split()) if os.getpgid(pid) == pid)


if __name__ == "__main__":
    sys.exit(torchrun_command(sys.argv[1:]))
