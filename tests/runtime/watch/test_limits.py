"""Limits of waiting: given, or learned from what was seen, for each kind of work."""

from __future__ import annotations

import pytest

from spmdguard import phase
from spmdguard.phases import phases
from spmdguard.watch.limits import EVALUATION, NUM_FIRST, TRAINING, Limits, kind_of, limit_for
from spmdguard.watch.standing import Standing

from .making import place


def learned(waits: int = NUM_FIRST + 1, waited_s: float = 30.0) -> Limits:
    limits = Limits()
    for _ in range(waits):
        limits.observe(TRAINING, waited_s)
    return limits


def test_the_first_steps_may_take_long() -> None:
    """Before enough waits were seen the first limit holds, and their length teaches nothing for later."""
    limits = learned(NUM_FIRST - 1, 500.0)
    assert limits.limit_s(TRAINING) == limits.first_s
    limits.observe(TRAINING, 500.0)
    assert limits.limit_s(TRAINING) == limits.least_s


def test_a_limit_is_a_multiple_of_the_longest_wait() -> None:
    """Waits of 30 s make a limit of eight times that; short ones do not go below the least."""
    assert learned().limit_s(TRAINING) == 240.0
    assert learned(waited_s=0.1).limit_s(TRAINING) == Limits().least_s


def test_other_work_has_limits_of_its_own() -> None:
    """An evaluation never seen before may take as long as the first steps; then its own waits count."""
    limits = learned()
    assert limits.limit_s(EVALUATION) == limits.first_s
    limits.observe(EVALUATION, 100.0)
    assert (limits.limit_s(EVALUATION), limits.limit_s(TRAINING)) == (800.0, 240.0)


def test_a_given_limit_holds_for_everything() -> None:
    """What the user says is not learned away."""
    limits = Limits(given_s=5.0)
    limits.observe(EVALUATION, 100.0)
    assert {limits.limit_s(kind) for kind in (TRAINING, EVALUATION, "save")} == {5.0}


@pytest.mark.parametrize(
    ("function", "kind"),
    [
        ("train_step", TRAINING),
        ("evaluate", EVALUATION),
        ("run_validation", EVALUATION),
        ("save_state", "save"),
    ],
)
def test_function_names_tell_the_kind_of_work(function: str, kind: str) -> None:
    """Without a phase, the names of the functions on the stack decide."""
    assert kind_of((), [place(3, "forward"), place(9, function)]) == kind


def test_an_open_phase_decides() -> None:
    """The outermost open phase is the kind of work, whatever the functions are called."""
    with phase("export"), phase("save"):
        assert kind_of(phases().open, [place(3, "evaluate")]) == "export"
    assert phases().open == ()


def test_a_phase_needs_a_name() -> None:
    """An empty name is refused."""
    with pytest.raises(ValueError, match="must be a text that is not empty, got ''"), phase(""):
        pass


def test_the_work_of_the_rank_that_is_late_counts() -> None:
    """Ranks that wait for one that evaluates wait as long as an evaluation may take."""
    limits = learned()
    late = Standing(rank=0, places=(place(3, "evaluate"),))
    early = Standing(rank=1, state="waiting", places=(place(5, "train"),))
    assert (limit_for(limits, [early]), limit_for(limits, [early, late])) == (240.0, limits.first_s)
