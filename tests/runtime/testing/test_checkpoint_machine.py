"""Checkpoints as a state machine: any history of runs, failures, kills and damage, beside a plain model."""

from __future__ import annotations

import logging
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import spmdguard
from spmdguard.checkpoint.names import list_published, parse_published
from spmdguard.checkpoint.retention import choose_superseded
from spmdguard.group.world import world as world_of_process
from spmdguard.testing import Outcome, SimulatedWorld, fault_point

RANKS = 3
ranks_of = st.integers(0, RANKS - 1)
PLACES = ("metadata", "local work", "state")


def save_steps(directory: Path, steps: list[int], keep_last: int | None) -> list[int]:
    """Save each step on every rank until one of them asks to stop; the steps that were saved."""
    rank = world_of_process().rank()
    saved = []

    def save_state(path: Path, step: int) -> None:
        fault_point("state")
        with spmdguard.deferring("local work"):
            fault_point("local work")
            (path / f"rank{rank}").write_text(str(step))

    for step in steps:
        found = spmdguard.save_checkpoint(
            directory,
            step=step,
            save_state=lambda path, step=step: save_state(path, step),
            write_metadata=lambda path: fault_point("metadata"),
            keep_last=keep_last,
        )
        if found is not None:
            saved.append(step)
        if spmdguard.sync_should_stop():
            break
    return saved


class Checkpoints(RuleBasedStateMachine):
    """A directory that many runs use, one after the other."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.directory = self.folder / "saved"
        self.complete: set[int] = set()
        self.last = 0

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    def next_steps(self, number: int) -> list[int]:
        steps = list(range(self.last + 1, self.last + 1 + number))
        self.last += number
        return steps

    def keep(self, step: int, keep_last: int | None) -> None:
        """The model saves ``step`` and deletes what is superseded."""
        self.complete.add(step)
        if keep_last is not None:
            self.complete = set(sorted(self.complete)[-keep_last:])

    def run(self, world: SimulatedWorld, steps: list[int], keep_last: int | None) -> list[Outcome]:
        return world.outcomes(save_steps, self.directory, steps, keep_last)

    @rule(number=st.integers(1, 3), keep_last=st.sampled_from([None, 1, 2]), seed=st.integers(0, 9))
    def save(self, number: int, keep_last: int | None, seed: int) -> None:
        """A run that ends well: every rank saved every step."""
        steps = self.next_steps(number)
        outcomes = self.run(SimulatedWorld(RANKS, seed, torch=False), steps, keep_last)
        assert [steps] * RANKS == [each.result for each in outcomes]
        for step in steps:
            self.keep(step, keep_last)
        assert [path.name for path in self.directory.glob(".spmdguard-saving-*")] == []

    @rule(rank=ranks_of, place=st.sampled_from(PLACES), nth=st.integers(1, 2), seed=st.integers(0, 9))
    def fail(self, rank: int, place: str, nth: int, seed: int) -> None:
        """An error in the nth save: the steps before it stay, that one is dropped on every rank."""
        steps = self.next_steps(3)
        world = SimulatedWorld(RANKS, seed, torch=False)
        world.fail(rank, at=place, nth=nth, error=OSError("full"))
        outcomes = self.run(world, steps, None)
        happens = place != "metadata" or rank == 0
        saved = steps[: nth - 1] if happens else steps
        for step in saved:
            self.keep(step, None)
        if happens and place == "state":
            assert [type(each.error).__name__ for each in outcomes] == [
                "OSError" if each.rank == rank else "RanksMissing" for each in outcomes
            ]
        else:
            assert [saved] * RANKS == [each.result for each in outcomes]

    @rule(rank=ranks_of, nth=st.integers(1, 14), seed=st.integers(0, 9))
    def kill(self, rank: int, nth: int, seed: int) -> None:
        """A rank is killed at its nth operation: no step that was complete before is lost."""
        steps = self.next_steps(3)
        world = SimulatedWorld(RANKS, seed, torch=False)
        world.kill(rank, nth=nth)
        self.run(world, steps, None)
        found = {each.step for each in list_published(self.directory)} & set(steps)
        assert found == set(steps[: len(found)])
        self.complete |= found

    @precondition(lambda self: self.complete)
    @rule()
    def damage(self) -> None:
        """A file of the newest checkpoint is lost: the one before it is the newest complete one."""
        newest = spmdguard.latest_checkpoint(self.directory)
        assert newest is not None
        (newest / "rank1").unlink()
        self.complete.remove(max(self.complete))

    @invariant()
    def the_newest_is_found(self) -> None:
        """The newest complete checkpoint is the model's, with a file of every rank."""
        found = spmdguard.latest_checkpoint(self.directory, wait_timeout=0)
        assert (found is None) == (not self.complete)
        if found is not None:
            published = parse_published(found.name)
            assert published is not None and published.step == max(self.complete)
            assert {str(published.step)} == {(found / f"rank{rank}").read_text() for rank in range(RANKS)}


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Failures by the hundred are logged otherwise."""
    logging.getLogger("spmdguard").setLevel(logging.CRITICAL)
    yield
    logging.getLogger("spmdguard").setLevel(logging.NOTSET)


def test_the_comparison_can_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a retention that also deletes the newest one, a counter-example is found."""

    def delete_all(complete, newest, keep_last, keep_every):  # type: ignore[no-untyped-def]  # as the original
        return [*choose_superseded(complete, newest, keep_last, keep_every), *([newest] if keep_last else [])]

    monkeypatch.setattr("spmdguard.checkpoint.retention.choose_superseded", delete_all)
    few = settings(TestCheckpoints.settings, max_examples=50, phases=[Phase.generate], database=None)
    with pytest.raises(AssertionError):
        run_state_machine_as_test(Checkpoints, settings=few)


@pytest.mark.filterwarnings("ignore:the fault")  # drawn for ranks that do not write metadata, too
class TestCheckpoints(Checkpoints.TestCase):  # type: ignore[misc, name-defined]  # made by hypothesis
    """Any history leaves the newest complete checkpoint that the model says."""

    settings = settings(
        max_examples=15, stateful_step_count=10, deadline=None, suppress_health_check=list(HealthCheck)
    )
