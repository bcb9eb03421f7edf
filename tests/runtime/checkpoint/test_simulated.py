"""The phases under every schedule of many simulated ranks in one process."""

from __future__ import annotations

from concurrent.futures import Future
from pathlib import Path

import pytest

import spmdguard
from spmdguard.testing import SimulatedWorld, fault_point

NUM_RANKS = 4


def save(folder: Path, step: int) -> str | None:
    def write(path: Path) -> None:
        spmdguard.barrier("inside")
        number = len(list(path.iterdir()))
        (path / f"file{number}").write_text("x")

    saved = spmdguard.save_checkpoint(folder, step=step, save_state=write, keep_last=1)
    return None if saved is None else saved.name


@pytest.mark.parametrize("seed", range(8))
def test_every_schedule_saves_the_same(tmp_path: Path, seed: int) -> None:
    """Whatever order ranks run in, all get the same checkpoint with a file of each rank."""
    assert SimulatedWorld(NUM_RANKS, seed=seed).run(save, tmp_path, 1) == ["step-00000001"] * NUM_RANKS
    assert len(list((tmp_path / "step-00000001").iterdir())) == NUM_RANKS + 1


@pytest.mark.parametrize("main_fails", [True, False])
def test_one_rank_that_defers_makes_all_skip(tmp_path: Path, main_fails: bool) -> None:
    """A deferred error inside save_state, on any rank: None on every rank, under every schedule."""

    def train() -> tuple[str | None, bool]:
        failing = spmdguard.is_main_process() == main_fails

        @spmdguard.rank_local
        def write(path: Path) -> None:
            if failing:
                raise OSError("disk")

        saved = spmdguard.save_checkpoint(tmp_path, step=1, save_state=write)
        return saved and saved.name, spmdguard.sync_should_stop()

    for seed in range(5):
        assert SimulatedWorld(NUM_RANKS, seed=seed).run(train) == [(None, True)] * NUM_RANKS
    assert list(tmp_path.iterdir()) == []


def test_a_background_that_fails_is_raised_in_finish(tmp_path: Path) -> None:
    """Its error leaves ``finish`` on that rank at once; nothing is published, and the next save cleans up."""
    future: Future[None] = Future()
    pending = spmdguard.start_checkpoint(tmp_path, step=1, save_state=lambda path: future)
    future.set_exception(OSError("disk"))
    with pytest.raises(OSError, match="disk"):
        pending.finish()
    with pytest.raises(spmdguard.CommunicationBroken):
        spmdguard.save_checkpoint(tmp_path, step=2, save_state=lambda path: None)
    assert [path.name.startswith(".spmdguard-saving-") for path in tmp_path.iterdir()] == [True]
    spmdguard.resume_communication()
    assert spmdguard.save_checkpoint(tmp_path, step=2, save_state=lambda path: None) is not None
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == [".spmdguard-latest", "step-00000002"]


def test_an_error_deferred_between_start_and_finish_does_not_drop_the_save(tmp_path: Path) -> None:
    """Only what save_state itself deferred makes a checkpoint incomplete."""
    pending = spmdguard.start_checkpoint(tmp_path, step=1, save_state=lambda path: None)
    spmdguard.defer_error(OSError("upload"))
    saved = pending.finish()
    assert saved is not None and saved == spmdguard.latest_checkpoint(tmp_path)


def test_a_skipped_start_is_skipped_in_finish(tmp_path: Path) -> None:
    """Where the folder could not be made, ``finish`` returns None without communication."""
    (tmp_path / "file").write_text("")
    pending = spmdguard.start_checkpoint(tmp_path / "file", step=1, save_state=lambda path: None)
    assert pending.finish() is None
    assert isinstance(spmdguard.deferred_error(), OSError)


def test_a_rank_that_still_writes_meets_no_missing_folder(tmp_path: Path) -> None:
    """After the main rank failed in save_state, another one writes on: its error is the lost partner alone."""

    def save() -> None:
        def save_state(path: Path) -> None:
            if spmdguard.is_main_process():
                raise ValueError("root cause")
            fault_point("write")
            (path / "late").write_text("x")

        spmdguard.save_checkpoint(tmp_path, step=1, save_state=save_state)

    world = SimulatedWorld(2, torch=False)
    world.delay(1, at="write", turns=50)
    main, other = world.outcomes(save)
    assert (type(main.error), type(other.error)) == (ValueError, spmdguard.RanksMissing)
