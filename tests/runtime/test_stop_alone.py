"""``sync_should_stop`` in a single process, without a process group."""

from __future__ import annotations

import logging

import pytest

import spmdguard


def test_it_answers_for_the_process_alone() -> None:
    """Without a group the answer is the process's own; a deferred error asks whatever the argument says."""
    assert (
        spmdguard.sync_should_stop(),
        spmdguard.sync_should_stop(True),
        spmdguard.sync_should_stop(False),
    ) == (False, True, False)
    spmdguard.try_or_defer(int, "x")
    assert (spmdguard.sync_should_stop(), spmdguard.sync_should_stop(False)) == (True, True)


def test_every_n_steps_answers_on_every_nth_call() -> None:
    """Between agreements the answer is False; two loops with different n count for themselves."""
    assert [spmdguard.sync_should_stop(True, every_n_steps=3) for _ in range(6)] == [False, False, True] * 2
    assert [spmdguard.sync_should_stop(True, every_n_steps=2) for _ in range(2)] == [False, True]


@pytest.mark.parametrize("wrong", [0, -1])
def test_wrong_intervals_are_refused(wrong: int) -> None:
    """An interval below 1 is a ValueError that shows it."""
    with pytest.raises(ValueError, match=f"every_n_steps must be at least 1, got {wrong}"):
        spmdguard.sync_should_stop(every_n_steps=wrong)


def test_the_reason_names_rank_and_error() -> None:
    """The reason holds the text of the rank that asked, and the call."""
    assert spmdguard.stop_reason() is None
    spmdguard.sync_should_stop()
    spmdguard.try_or_defer(int, "x")
    spmdguard.sync_should_stop()
    reason = spmdguard.stop_reason()
    assert reason is not None
    assert (reason.ranks, reason.call) == ((0,), 2)
    assert str(reason).startswith("rank 0: deferred ValueError: invalid literal")


def test_the_reason_of_an_argument_names_the_place() -> None:
    """Where the caller asked by argument, the reason is the place of the call."""
    spmdguard.sync_should_stop(True)
    reason = spmdguard.stop_reason()
    assert reason is not None
    assert reason.texts[0].startswith("should_stop=True at ")
    assert reason.texts[0].endswith("in test_the_reason_of_an_argument_names_the_place")


def test_a_forgotten_outer_loop_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    """Asking again after a true answer is logged once, with the way out."""
    spmdguard.try_or_defer(int, "x")
    with caplog.at_level(logging.WARNING, logger="spmdguard"):
        caplog.clear()
        for _ in range(4):
            spmdguard.sync_should_stop()
    (record,) = caplog.records
    assert "break it too" in record.getMessage()


def test_an_outer_loop_that_asks_at_its_own_place_is_not_told(caplog: pytest.LogCaptureFixture) -> None:
    """The inner loop was left, and the outer one asks for itself whether to go on: nothing is forgotten."""
    spmdguard.try_or_defer(int, "x")
    with caplog.at_level(logging.WARNING, logger="spmdguard"):
        caplog.clear()
        for _ in range(4):
            for _ in range(4):
                if spmdguard.sync_should_stop():
                    break
            if spmdguard.sync_should_stop(False):
                break
    assert caplog.records == []


def test_rank_local_work_cannot_ask() -> None:
    """Inside rank-local work it does not start."""
    spmdguard.try_or_defer(spmdguard.sync_should_stop)
    assert isinstance(spmdguard.deferred_error(), spmdguard.CollectiveInRankLocalError)
