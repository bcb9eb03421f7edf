"""Signals and time limits ask for a stop: on one process, on simulated ranks, and on real ones."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import spmdguard
from spmdguard import current
from spmdguard.clock import clock
from spmdguard.stop.sources import sources
from spmdguard.testing import SimulatedWorld, fault_point

from .processes import Zygote


class Watch:
    """A clock that the test moves."""

    now_s = 100.0

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds


@pytest.fixture
def watch() -> Watch:
    found = Watch()
    values = current.simulated_values()
    assert values is not None
    values[clock] = found
    return found


@pytest.fixture
def real_process() -> Iterator[None]:
    """Signal handlers are the process's; so is, here, everything else."""
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT)]
    with current.simulated_process({}):
        current._reset_after_fork()  # the state of the process itself, as outside of tests
        yield
        for source in list(sources().open):
            source.close()
    after = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT)]
    assert before == after


def reason() -> str:
    found = spmdguard.stop_reason()
    return "" if found is None else found.texts[0]


@pytest.mark.parametrize("limit", [60, 60.0, timedelta(minutes=1)])
def test_a_time_limit_asks_until_it_is_closed(watch: Watch, limit: float | timedelta) -> None:
    """Counted from the call; asks from the instant on, at every call, and no longer after `close`."""
    source = spmdguard.stop_after(limit)
    watch.sleep(59.9)
    assert (spmdguard.sync_should_stop(), source.asks) == (False, False)
    watch.sleep(0.1)
    assert [spmdguard.sync_should_stop(False) for _ in range(2)] == [True, True]
    assert (reason(), source.asks) == ("the time limit of 60 s has passed", True)
    source.close()
    source.close()
    assert spmdguard.sync_should_stop() is False


@pytest.mark.parametrize("limit", [0, -1, float("inf"), float("nan")])
def test_wrong_limits_are_refused(limit: float) -> None:
    """A limit that is no positive number of seconds is a ValueError that shows it."""
    with pytest.raises(ValueError, match=f"limit must be a positive number of seconds, got {limit}"):
        spmdguard.stop_after(limit)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP, 0, 12345])
def test_signals_that_cannot_be_handled_are_refused(number: int) -> None:
    """They are a ValueError that shows the value."""
    with pytest.raises(ValueError, match="signals must be signals that can be handled, got "):
        spmdguard.stop_on_signal(number)


def test_a_signal_asks_for_a_stop(real_process: None) -> None:
    """Either default signal asks, names itself once, and the earlier handlers come back."""
    with spmdguard.stop_on_signal() as source:
        assert not source.asks
        for _ in range(3):
            os.kill(os.getpid(), signal.SIGUSR1)
        assert (source.asks, source.text) == (True, "received SIGUSR1")
        assert spmdguard.sync_should_stop() is True
    assert spmdguard.sync_should_stop() is False


def test_the_programs_own_handler_is_called_too(real_process: None) -> None:
    """A handler that was there before is called, also through two sources, and comes back."""
    seen: list[int] = []
    before = signal.signal(signal.SIGUSR1, lambda number, frame: seen.append(number))
    try:
        with (
            spmdguard.stop_on_signal(signal.SIGUSR1) as outer,
            spmdguard.stop_on_signal(signal.SIGUSR1) as inner,
        ):
            os.kill(os.getpid(), signal.SIGUSR1)
            assert (outer.asks, inner.asks) == (True, True)
        os.kill(os.getpid(), signal.SIGUSR1)
        assert seen == [signal.SIGUSR1] * 2
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_a_second_interrupt_interrupts(real_process: None, request: pytest.FixtureRequest) -> None:
    """The first SIGINT asks for a stop, the second one is Python's own again."""
    before = signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # ignored where the tests run in the background
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))
    with spmdguard.stop_on_signal(signal.SIGINT) as source:
        os.kill(os.getpid(), signal.SIGINT)
        assert source.asks
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
            threading.Event().wait(5)  # the handler runs before the next line at the latest


def test_other_threads_cannot_handle_signals(real_process: None) -> None:
    """Called on another thread it says why it cannot work."""
    caught: list[BaseException] = []

    def call() -> None:
        try:
            spmdguard.stop_on_signal()
        except ValueError as error:
            caught.append(error)

    thread = threading.Thread(target=call)
    thread.start()
    thread.join(timeout=10)
    assert [str(error) for error in caught] == [
        "stop_on_signal must be called on the main thread: Python handles signals only there"
    ]


def test_every_reason_of_a_rank_is_told(watch: Watch) -> None:
    """A deferred error, a limit and an argument of one rank are all in its text."""
    spmdguard.try_or_defer(int, "x")
    spmdguard.stop_after(1)
    watch.sleep(2)
    spmdguard.sync_should_stop(True)
    parts = reason().split("; ")
    assert [part.split(" ")[0] for part in parts] == ["deferred", "the", "should_stop=True"]


def test_reasons_of_many_ranks_are_short() -> None:
    """Equal texts are told once with their ranks, and no more than four different ones."""
    equal = spmdguard.StopReason(dict.fromkeys(range(64), "received SIGTERM"), 1)
    assert str(equal) == "ranks 0-63: received SIGTERM"
    different = spmdguard.StopReason({rank: f"error {rank}" for rank in range(6)}, 1)
    assert str(different) == "; ".join(f"rank {n}: error {n}" for n in range(4)) + "; and 2 more"


def train(num_steps: int = 20, overlap: bool = False) -> tuple[int, str]:
    """Steps made until all agree, and why."""
    with spmdguard.stop_on_signal(signal.SIGTERM), spmdguard.stop_after(100):
        for step in range(num_steps):
            fault_point("step")
            if spmdguard.sync_should_stop(overlap=overlap):
                return step, str(spmdguard.stop_reason())
    return num_steps, ""


@pytest.mark.parametrize("overlap", [False, True])
@pytest.mark.parametrize("how", ["signal", "limit"])
def test_one_rank_is_asked_and_all_stop(how: str, overlap: bool) -> None:
    """A signal or limit that reaches one rank stops every rank after the same step, one later if late."""
    world = SimulatedWorld(4, seed=3, torch=False)
    if how == "signal":
        world.signal(2, signal.SIGTERM, at="step", nth=6)
    else:
        world.advance(2, seconds=100, at="step", nth=6)
    text = "received SIGTERM" if how == "signal" else "the time limit of 100 s has passed"
    assert [(5 + overlap, f"rank 2: {text}")] * 4 == world.run(train, overlap=overlap)


@pytest.mark.filterwarnings("ignore:the fault signal")  # rank 0 has stopped before
def test_ranks_are_asked_in_different_steps() -> None:
    """The first one decides; a rank that is asked in the same step is named too."""
    world = SimulatedWorld(3, torch=False)
    world.signal(0, signal.SIGTERM, at="step", nth=9)
    world.signal(1, signal.SIGTERM, at="step", nth=4)
    world.advance(2, seconds=500, at="step", nth=4)
    expected = "rank 1: received SIGTERM; rank 2: the time limit of 100 s has passed"
    assert [(3, expected)] * 3 == world.run(train)


def test_an_unexpected_signal_kills_a_simulated_rank() -> None:
    """Without a source for it, a signal ends the rank, as it ends a process."""
    world = SimulatedWorld(2, torch=False)
    world.signal(1, signal.SIGUSR2, at="step", nth=2)
    outcomes = world.outcomes(train)
    assert [each.killed for each in outcomes] == [False, True]


@pytest.mark.parametrize("overlap", [False, True])
def test_a_forgotten_outer_loop_is_told_once_on_every_rank(
    overlap: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """An outer loop that goes on after a true answer is named in the log with the line of the call."""

    def epochs() -> int:
        spmdguard.stop_after(1)
        steps = 0
        for _ in range(4):
            for _ in range(5):
                fault_point("step")
                steps += 1
                if spmdguard.sync_should_stop(overlap=overlap):
                    break
        return steps

    world = SimulatedWorld(2, torch=False)
    world.advance(1, seconds=1, at="step", nth=3)
    with caplog.at_level(logging.WARNING, logger="spmdguard"):
        assert [10 if overlap else 6] * 2 == world.run(epochs)
    told = [record.getMessage() for record in caplog.records if "break it too" in record.getMessage()]
    assert len(told) == 2
    assert all("test_stop_sources.py" in text and "in epochs" in text for text in told)


def test_gradients_are_accumulated_to_the_end() -> None:
    """Called once an optimizer step, or with `every_n_steps`, a stop never falls between micro-batches."""

    def accumulate(once: bool) -> tuple[int, int]:
        spmdguard.stop_on_signal(signal.SIGTERM)
        pending = updates = 0
        for micro in range(1, 41):
            fault_point("micro")
            pending += 1
            if micro % 4 == 0:
                pending, updates = 0, updates + 1
            if once and micro % 4:
                continue
            if spmdguard.sync_should_stop(every_n_steps=1 if once else 4):
                break
        return pending, updates

    for once in (True, False):
        world = SimulatedWorld(2, torch=False)
        world.signal(0, signal.SIGTERM, at="micro", nth=6)
        assert world.run(accumulate, once) == [(0, 2)] * 2


@pytest.mark.processes
@pytest.mark.parametrize("who", [[1], [0, 1]])
def test_real_ranks_stop_after_a_real_signal(zygote: Zygote, tmp_path: Path, who: list[int]) -> None:
    """SIGTERM to one rank or to both: both leave after the same step, save, and end with code 0."""
    ended = zygote.run("preempting:preempted", ranks=2, who=who, folder=tmp_path)
    assert ended.codes == [0, 0], ended.report()
    lines = [each.out.splitlines() for each in ended.ranks]
    assert lines[0] == lines[1], ended.report()
    assert "received SIGTERM" in lines[0][0]
    assert lines[0][1].startswith("saved step-")


@pytest.mark.processes
def test_sources_live_on_after_an_elastic_restart(zygote: Zygote) -> None:
    """In a rebuilt group calls are counted anew, a signal that came before the failure still asks."""
    ended = zygote.run("preempting:rebuilt", ranks=2)
    assert ended.codes == [0, 0], ended.report()
    expected: list[Any] = ["False False", "refused", "True ranks 0-1: received SIGUSR1"]
    assert [expected] * 2 == [each.out.splitlines() for each in ended.ranks]
