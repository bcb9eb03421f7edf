"""What this process says that it is doing: evaluation, a checkpoint. The watch waits longer where it should."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from spmdguard.current import PerProcess

__all__ = ["phase"]

SAVE = "save"


class Phases:
    """Open phases of this process, outermost first; other threads read the tuple."""

    def __init__(self) -> None:
        self.open: tuple[str, ...] = ()


phases: PerProcess[Phases] = PerProcess(Phases)


@contextlib.contextmanager
def phase(name: str) -> Iterator[None]:
    """Say what this rank is doing; a stall report shows it, and waiting is judged by the phase's own limit.

    ``save_checkpoint`` is in the phase ``"save"`` by itself.

    SPMD:
        Rank-local: no communication.
        Called by: any rank.
        Result: none.
        Raises on: no rank.

    Args:
        name: for example ``"evaluation"`` or ``"save"``.

    Raises:
        ValueError: ``name`` is empty.
    """
    if not name or not isinstance(name, str):
        raise ValueError(f"name must be a text that is not empty, got {name!r}")
    state = phases()
    before = state.open
    state.open = (*before, name)
    try:
        yield
    finally:
        state.open = before
