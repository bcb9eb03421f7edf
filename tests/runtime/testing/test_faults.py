"""Faults by plan: errors, kills and delays strike where they were planned, and nowhere else."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
import torch
import torch.distributed as dist

import spmdguard
from spmdguard.testing import CollectiveMismatch, SimulatedWorld, fault_point


def train(num_steps: int = 6) -> int:
    """A loop with rank-local work, guarded."""
    for step in range(num_steps):
        dist.all_reduce(torch.ones(2))
        spmdguard.try_or_defer(fault_point, "upload")
        if spmdguard.sync_should_stop():
            return step
    return num_steps


@pytest.mark.parametrize("seed", range(3))
def test_rank_local_failures_stop_all_ranks_together(seed: int) -> None:
    """An upload that fails on one rank at its third step: every rank stops at that step, none hangs."""
    world = SimulatedWorld(4, seed)
    world.fail(1, at="upload", nth=3, error=OSError("disk full"))
    assert world.run(train) == [2] * 4
    assert world.run(train) == [2] * 4, "faults strike in every run"


@pytest.mark.parametrize("rank", [0, 2])
def test_run_ends_with_the_rank_that_failed(rank: int) -> None:
    """``spmdguard.run`` raises the deferred error on its rank, and tells the main rank."""
    world = SimulatedWorld(3)
    world.fail(rank, at="upload", nth=2, error=OSError("disk full"))
    errors = [type(each.error) for each in world.outcomes(spmdguard.run, train)]
    expected: list[type] = [type(None)] * 3
    expected[0] = spmdguard.OtherRanksFailed
    expected[rank] = OSError
    assert expected == errors


def test_an_error_in_a_collective_breaks_the_others_at_once() -> None:
    """A collective that fails on one rank: the others get the mismatch, which names its error as cause."""
    world = SimulatedWorld(3)
    world.fail(2, at="all_reduce", nth=2, error=RuntimeError("NCCL error"))
    with pytest.raises(CollectiveMismatch, match="rank 2 ended and will never come to") as caught:
        world.run(train)
    assert str(caught.value.__cause__) == "NCCL error"


def test_a_killed_rank_runs_nothing_more_before_the_others_end() -> None:
    """Kill: no handler and no ``finally`` of the rank runs while others do; the others are told."""
    seen: list[str] = []

    def work() -> None:
        try:
            for _ in range(3):
                dist.barrier()
        except Exception:
            seen.append("handler")
            raise
        finally:
            seen.append(f"finally {dist.get_rank()}")

    world = SimulatedWorld(3)
    world.kill(1, at="barrier", nth=2)
    outcomes = world.outcomes(work)
    assert [each.killed for each in outcomes] == [False, True, False]
    assert [type(each.error) for each in outcomes] == [CollectiveMismatch, type(None), CollectiveMismatch]
    assert "was killed at barrier" in str(outcomes[0].error)
    assert seen[-1] == "finally 1"
    assert seen.count("handler") == 2


def test_a_kill_that_nobody_waits_for_is_no_mismatch() -> None:
    """A rank killed after its last collective takes nobody along."""

    def work() -> str:
        dist.barrier()
        fault_point("late")
        return "done"

    world = SimulatedWorld(2)
    world.kill(0, at="late")
    assert [(each.ok, each.result) for each in world.outcomes(work)] == [(False, None), (True, "done")]


def test_faults_without_a_name_count_every_operation() -> None:
    """``nth`` alone counts collectives, transfers and fault points of the rank."""

    def work() -> None:
        dist.barrier()
        fault_point("between")
        dist.barrier()

    world = SimulatedWorld(1)
    world.fail(0, nth=2, error=OSError("at the fault point"))
    (outcome,) = world.outcomes(work)
    assert str(outcome.error) == "at the fault point"


def test_operations_are_also_known_by_what_the_user_called() -> None:
    """``at`` takes the function the user called, such as ``all_gather_object``."""

    def work() -> None:
        dist.barrier()
        dist.all_gather_object([None], 1)

    world = SimulatedWorld(1)
    world.fail(0, at="all_gather_object", error=OSError("lost"))
    (outcome,) = world.outcomes(work)
    assert str(outcome.error) == "lost"


def test_fault_points_do_nothing_outside() -> None:
    """In a real run a fault point is nothing."""
    fault_point("upload")


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (lambda world: world.kill(4), "rank must be from 0 to 3, got 4"),
        (lambda world: world.kill(-1), "rank must be from 0 to 3, got -1"),
        (lambda world: world.kill(0, nth=0), "nth must be at least 1, got 0"),
        (lambda world: world.delay(0, turns=0), "turns must be at least 1, got 0"),
        (
            lambda world: world.fail(0, error=OSError),
            "error must be an exception object, got <class 'OSError'>",
        ),
        (lambda world: world.run(3), "fn must be callable, got 3"),
        (lambda world: SimulatedWorld(0), "ranks must be at least 1, got 0"),
    ],
)
def test_wrong_plans_are_refused(plan: object, message: str) -> None:
    """Ranks that do not exist, counts below one and classes instead of objects are told with their value."""
    with pytest.raises((ValueError, TypeError), match=message):
        plan(SimulatedWorld(4))  # type: ignore[operator]  # a lambda


def test_errors_of_ranks_keep_type_traceback_and_say_where() -> None:
    """The first error of a rank leaves ``run`` as it is, with a note that names rank and seed."""

    def work() -> None:
        raise KeyError("lost")

    with pytest.raises(KeyError) as caught:
        SimulatedWorld(2, seed=3).run(work)
    (note,) = caught.value.__notes__
    assert "seed 3" in note and "failed too" in note
    assert caught.traceback[-1].name == "work"


def test_a_failed_assertion_of_the_test_comes_first() -> None:
    """An assertion that fails on one rank is what the test sees, not that the others then waited for it."""

    def work() -> None:
        assert dist.get_rank() != 1, "rank 1 is wrong"
        dist.barrier()

    with pytest.raises(AssertionError, match="rank 1 is wrong"):
        SimulatedWorld(3).run(work)


def test_an_assertion_after_a_mismatch_does_not_hide_it() -> None:
    """What fails because ranks parted ways does not hide that they did."""

    def work() -> None:
        try:
            dist.barrier() if dist.get_rank() else dist.all_reduce(torch.ones(1))
        except RuntimeError:
            raise AssertionError("a consequence") from None

    with pytest.raises(CollectiveMismatch, match="ranks began different collectives"):
        SimulatedWorld(2).run(work)


def test_exits_are_endings() -> None:
    """``sys.exit()`` ends a rank well, ``sys.exit(3)`` is its error; ``end_now`` leaves the test alive."""
    import sys

    from spmdguard.group.exit import end_now

    assert SimulatedWorld(1).outcomes(sys.exit)[0].ok
    for leave in (sys.exit, end_now):
        (outcome,) = SimulatedWorld(1).outcomes(leave, 3)
        assert isinstance(outcome.error, SystemExit) and outcome.error.code == 3


def test_run_with_exit_process_leaves_the_test_alive() -> None:
    """``run(exit_process=True)`` ends the simulated rank, not the process, and runs no exit handlers."""
    import atexit

    ran: list[str] = []
    handler = atexit.register(ran.append, "handler")
    try:
        outcomes = SimulatedWorld(2).outcomes(lambda: spmdguard.run(train, exit_process=True))
    finally:
        atexit.unregister(handler)
    assert ([each.ok for each in outcomes], ran) == ([True, True], [])


@pytest.mark.parametrize(
    ("at", "nth", "said"),
    [
        ("log_metrics", 1, "of a function of yours name a line"),
        ("upload", 9, "rank 1 has come there 6 times"),
        ("nowhere.py:3", 1, "has not come to that line so often"),
    ],
)
def test_a_fault_that_never_strikes_is_told(at: str, nth: int, said: str) -> None:
    """A test that passes because its fault was misspelt proves nothing; the warning says what could be named."""
    world = SimulatedWorld(2)
    world.fail(1, at=at, nth=nth, error=OSError("disk full"))
    with pytest.warns(UserWarning, match=f"the fault fail.1, at='{at}', nth={nth}. has not struck") as caught:
        assert world.run(train) == [6, 6]
    (warning,) = caught
    assert said in str(warning.message)
    assert warning.filename == __file__


@pytest.mark.filterwarnings("error")
def test_a_fault_behind_a_failure_is_not_told() -> None:
    """Where a rank failed or was killed before, it is no mistake of the test."""
    world = SimulatedWorld(2)
    world.kill(1, at="all_reduce", nth=1)
    world.fail(1, at="upload", nth=3, error=OSError("disk full"))
    assert [each.killed for each in world.outcomes(train)] == [False, True]
