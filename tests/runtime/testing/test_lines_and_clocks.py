"""Faults at any line of code, signals, and clocks that only the test moves."""

from __future__ import annotations

import inspect
import signal
import sys
from pathlib import Path

import pytest

import spmdguard
from spmdguard.checkpoint import files
from spmdguard.clock import clock
from spmdguard.testing import SimulatedWorld, fault_point

HERE = Path(__file__).name


def train(num_steps: int = 4) -> tuple[int, list[int]]:
    """Steps that all ranks made, and those in which this one counted."""
    counted: list[int] = []

    @spmdguard.rank_local
    def count(step: int) -> None:
        number = step * 10
        counted.append(number)

    for step in range(num_steps):
        count(step)
        spmdguard.barrier()
        if spmdguard.sync_should_stop():
            return step, counted
    return num_steps, counted


def line_of(text: str) -> str:
    """The place of the line of ``train`` that holds ``text``."""
    lines, first = inspect.getsourcelines(train)
    (index,) = [index for index, line in enumerate(lines) if text in line]
    return f"{HERE}:{first + index}"


def test_an_error_at_a_line() -> None:
    """The error is raised where the rank would run the line for the nth time; here it is deferred."""
    world = SimulatedWorld(3, torch=False)
    world.fail(1, at=line_of("counted.append"), nth=2, error=OSError("disk"))
    assert world.run(train) == [(1, [0, 10]), (1, [0]), (1, [0, 10])]


def test_two_errors_at_lines() -> None:
    """An error switches tracing off; the next operation switches it on again."""
    world = SimulatedWorld(2, torch=False)
    world.fail(0, at=line_of("number = step"), nth=1, error=OSError("first"))
    world.fail(0, at=line_of("counted.append"), nth=1, error=OSError("second"))

    def twice() -> list[tuple[int, list[int]]]:
        rounds = []
        for _ in range(2):
            rounds.append(train(1))
            with pytest.raises(OSError) if spmdguard.has_deferred_error() else _nothing():
                spmdguard.raise_if_deferred_error()
        return rounds

    assert world.run(twice)[0] == [(0, []), (0, [])]


class _nothing:
    def __enter__(self) -> None:
        return

    def __exit__(self, *_: object) -> None:
        return


def test_a_kill_at_a_line_is_told_with_its_place() -> None:
    """The others learn where the rank was killed, and nothing of it runs afterwards."""
    world = SimulatedWorld(2, torch=False)
    world.kill(1, at=line_of("spmdguard.barrier()"), nth=3)
    outcomes = world.outcomes(train)
    assert [each.killed for each in outcomes] == [False, True]
    assert f"{HERE}" in str(outcomes[0].error.__cause__)


def test_no_trace_function_stays() -> None:
    """Tracing is switched on for the planned rank's thread only, and the process has none afterwards."""
    before = sys.gettrace()
    world = SimulatedWorld(2, torch=False)
    world.delay(1, at=line_of("spmdguard.barrier()"), turns=3)

    def is_traced() -> bool:
        train(1)
        return sys.gettrace() is not None

    assert world.run(is_traced) == [before is not None, True]
    assert sys.gettrace() is before


def test_clocks_are_apart_and_move_when_told() -> None:
    """A rank's clock starts at 0, goes forward where it is planned, and by waiting; no time passes here."""
    world = SimulatedWorld(2, torch=False)
    world.advance(1, seconds=1000, at="later")

    def look() -> list[float]:
        times = [clock().monotonic()]
        fault_point("later")
        times.append(clock().monotonic())
        assert not files.wait_until(lambda: False, 90.0)
        return [*times, round(clock().monotonic() - times[-1]) // 10]

    assert world.run(look) == [[0.0, 0.0, 9.0], [0.0, 1000.0, 9.0]]


@pytest.mark.parametrize("seconds", [0, -1.5])
def test_clocks_do_not_go_back(seconds: float) -> None:
    """A step of the clock that is not forward is refused with its value."""
    with pytest.raises(ValueError, match=f"seconds must be positive, got {float(seconds)}"):
        SimulatedWorld(2).advance(0, seconds=seconds)


def test_several_faults_at_one_operation() -> None:
    """They happen in the order in which they were planned."""
    world = SimulatedWorld(2, torch=False)
    world.advance(0, seconds=5, at="point")
    world.signal(0, signal.SIGTERM, at="point")

    def look() -> tuple[float, bool]:
        source = spmdguard.stop_on_signal(signal.SIGTERM)
        fault_point("point")
        return clock().monotonic(), source.asks

    assert world.run(look) == [(5.0, True), (0.0, False)]
