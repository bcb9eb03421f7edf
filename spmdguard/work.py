"""What the two classifications do: run a piece in the right thread state, and decide about an exception."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Literal

from spmdguard import deferred, region
from spmdguard.errors import CollectiveInRankLocalError
from spmdguard.format import find_user_frame
from spmdguard.group import guard
from spmdguard.group.world import world
from spmdguard.latch import is_communication_failure, latch

Only = Literal["main", "local_main"]


class RankLocalWork:
    """One rank-local function: its label, what stands in for a lost result, and where it runs."""

    def __init__(self, name: str, default: Any = None, only: Only | None = None) -> None:
        self.name = name
        self.default = default
        self.only = only

    def begin(self) -> bool:
        """Whether the work runs on this rank."""
        if self.only is None:
            return True
        return (world().rank() if self.only == "main" else world().local_rank()) == 0

    def step(self, run: Callable[..., Any], *args: Any) -> Any:
        """Run one piece inside the region."""
        regions = region.thread.regions
        depth = len(regions)
        switched = False
        try:
            if not depth:
                switched = guard.switch_on()
            regions.append(self.name)
            return run(*args)
        finally:
            if switched:
                guard.switch_off()
            del regions[depth:]

    def settle(self, exc: BaseException) -> Any:
        """Defer ``exc``; raise it where it is no ``Exception`` or came out of a collective.

        Called outside the ``except`` block, so that ``sys.exc_info`` is what the caller was handling before.
        """
        if not isinstance(exc, Exception) or is_communication_failure(exc, sys.exc_info()[1]):
            raise exc
        deferred.defer(exc, self.name, find_user_frame())
        return self.default


class CollectiveWork:
    """One collective function: its label."""

    default = None

    def __init__(self, name: str) -> None:
        self.name = name

    def begin(self) -> bool:
        """Count the call, or refuse it after a failure."""
        state = latch()
        if state.failure is not None:
            raise state.refuse(self.name)
        state.num_begun += 1
        return True

    def step(self, run: Callable[..., Any], *args: Any) -> Any:
        """Run one piece under the collective's name."""
        collectives = region.thread.collectives
        depth = len(collectives)
        try:
            collectives.append(self.name)
            return run(*args)
        finally:
            del collectives[depth:]

    def settle(self, exc: BaseException) -> Any:
        """Close the latch and raise ``exc`` unchanged."""
        self.fail(exc)
        raise exc

    def fail(self, exc: BaseException) -> None:
        """Close the latch, unless the region guard kept the collective from starting."""
        if not (isinstance(exc, CollectiveInRankLocalError) and region.thread.regions):
            latch().close(exc, self.name)
