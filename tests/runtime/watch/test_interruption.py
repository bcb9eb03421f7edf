"""Whether a main thread has got a KeyboardInterrupt, told from what the watch sees of it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from spmdguard.watch import interrupting
from spmdguard.watch.interrupting import Interruption


class World:
    """An interrupt so many seconds ago, and a main thread at a place."""

    def __init__(self) -> None:
        self.since_s = 0.0
        self.mark, self.waited = 1, 9.0
        self.seen: Any = Interruption(self)  # type: ignore[arg-type]  # it asks for the time alone

    def interrupted_s(self) -> float:
        return self.since_s

    def forget_interrupt(self) -> None:
        self.since_s = 0.0

    def look(self, since_s: float, mark: int, waited_s: float = 9.0) -> tuple[bool, bool]:
        self.since_s = since_s
        holds = self.seen.holds(SimpleNamespace(mark=mark, waited_s=lambda: waited_s))
        return holds, self.seen.overdue


def test_a_thread_that_stood_there_before_is_blocked() -> None:
    """It has not moved since the look before the signal: it is over after two seconds."""
    world = World()
    assert world.look(0, 1) == (False, False)
    assert world.look(0.1, 1) == (True, False)
    assert world.look(2.1, 1) == (True, True)


def test_a_thread_that_moved_has_got_it() -> None:
    """Whatever it waits in afterwards is its own."""
    world = World()
    world.look(0, 1)
    assert world.look(0.1, 1) == (True, False)
    assert world.look(0.5, 2) == (False, False)
    assert world.since_s == 0
    assert world.look(0, 2) == (False, False)


def test_a_thread_that_moved_around_the_signal_is_given_more_time() -> None:
    """It may have been blocked just before the signal, or have begun a collective because of it."""
    world = World()
    world.look(0, 1)
    assert world.look(0.1, 2) == (True, False)
    assert world.look(3.0, 2) == (True, False)
    assert world.look(10.1, 2) == (True, True)


def test_a_thread_that_waits_for_no_rank_is_left_alone() -> None:
    """A long call in C that is no communication returns by itself."""
    world = World()
    world.look(0, 1)
    world.look(0.1, 1)
    assert world.look(2.1, 1, waited_s=0.0) == (False, False)


def test_a_handler_of_the_interrupt_is_left_alone() -> None:
    """Collectives in an `except KeyboardInterrupt` block, also behind another exception there."""
    world = World()
    world.look(0, 1)
    world.look(0.1, 2)
    try:
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt:
            raise ValueError from None
    except ValueError:
        assert world.look(10.1, 2) == (False, False)
    assert not interrupting._is_handling_interrupt()
