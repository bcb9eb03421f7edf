"""Where a rank is that holds the GIL in native code: its own threads cannot say it, a C thread can.

``faulthandler``'s watchdog is armed anew at every tick of the watch. Where the watch thread does not get to run,
it writes the stacks of all threads to a file of the node's board. A program that arms the watchdog itself
keeps it: ours is off from then on.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
from pathlib import Path
from typing import Any

from spmdguard.watch.fatal import main_thread_frames
from spmdguard.watch.looking import places_of
from spmdguard.watch.standing import Place

AFTER_S = 1.5
_MAX_BYTES = 65_536


class NativeWatchdog:
    """Dumps this process's stacks where nobody calls ``arm`` for ``AFTER_S``."""

    def __init__(self, folder: Path, rank: int) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self._file = os.open(folder / f"stacks-{rank}", flags, 0o600)
        self._arm: Any = faulthandler.dump_traceback_later
        self._cancel: Any = faulthandler.cancel_dump_traceback_later
        self._on = True
        faulthandler.dump_traceback_later = self._given_away
        faulthandler.cancel_dump_traceback_later = self._cancelled

    def _given_away(self, *args: Any, **kwargs: Any) -> Any:
        self._on = False
        return self._arm(*args, **kwargs)

    def _cancelled(self) -> None:
        self._on = False
        self._cancel()

    def arm(self) -> None:
        """The watch thread runs: put the dump off."""
        if self._on:
            self._arm(AFTER_S, file=self._file)

    def close(self) -> None:
        """Never dump again, and give the functions back."""
        if self._on:
            self._cancel()
        self._on = False
        if faulthandler.dump_traceback_later == self._given_away:
            faulthandler.dump_traceback_later = self._arm
            faulthandler.cancel_dump_traceback_later = self._cancel
        with contextlib.suppress(OSError):
            os.close(self._file)


def read_stacks(folder: Path, rank: int) -> tuple[Place, ...]:
    """The user's frames of a rank's main thread in the last dump, innermost first; empty without one."""
    try:
        with (folder / f"stacks-{rank}").open("rb") as file:
            text = file.read(_MAX_BYTES).decode(errors="replace")
    except OSError:
        return ()
    return places_of(main_thread_frames(text))
