"""The clock that durations are measured with: the machine's, or one that a simulated rank has for itself."""

from __future__ import annotations

import time
from typing import Protocol

from spmdguard.current import PerProcess


class Clock(Protocol):
    """Seconds that only go forward, and waiting."""

    def monotonic(self) -> float:
        """Now, in seconds since some instant."""
        ...

    def sleep(self, seconds: float) -> None:
        """Return ``seconds`` later."""
        ...


class MachineClock:
    """The clock of the machine."""

    monotonic = staticmethod(time.monotonic)
    sleep = staticmethod(time.sleep)


clock: PerProcess[Clock] = PerProcess(MachineClock)
