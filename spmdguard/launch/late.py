"""Processes that came after all ranks had met: they were refused, the job is whole, but somebody should know."""

from __future__ import annotations

import sys
import threading

from spmdguard.current import PerProcess
from spmdguard.group.bounded import DidNotReturn, call_bounded
from spmdguard.launch.handshake import Launched
from spmdguard.launch.identity import read_identity

__all__ = ["LateComers", "late_comers"]

_MAX_LATE = 8
_LOOK_S = 2.0


class LateComers:
    """Those of one handshake; each is told once a process, whoever asks."""

    def __init__(self, launched: Launched) -> None:
        self._launched = launched
        self._num_told = 0
        self._looking = threading.Lock()

    def tell(self) -> None:
        """Print who came since the last look; the store may be gone, and then nobody can have come."""
        if not self._looking.acquire(blocking=False):
            return
        try:
            texts = call_bounded(self._find_new, _LOOK_S, "look for late processes")
        except (DidNotReturn, RuntimeError):
            return
        finally:
            self._looking.release()
        for text in texts:
            try:
                who = read_identity(text).describe()
            except ValueError as error:
                who = f"a process with an unreadable record ({error})"
            sys.stderr.write(f"spmdguard: {who} came after all ranks had met and was refused\n")

    def _find_new(self) -> list[bytes]:
        launched = self._launched
        if launched.store is None:
            return []
        store = launched.store.under("launch", launched.identity.restart, launched.number)
        num_late = min(store.add("late", 0), _MAX_LATE)
        texts = store.get_texts([f"late/{number}" for number in range(self._num_told + 1, num_late + 1)])
        if texts is None:
            return []  # counted, but not written yet: the next look sees it
        self._num_told = num_late
        return texts


_known: PerProcess[dict[int, LateComers]] = PerProcess(dict)


def late_comers(launched: Launched) -> LateComers:
    """The late processes of this handshake."""
    return _known().setdefault(launched.number, LateComers(launched))
