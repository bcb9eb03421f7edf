"""``save_checkpoint`` on simulated ranks: failures and kills at its own steps, on any schedule."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")
import torch
import torch.distributed.checkpoint as dcp

import spmdguard
from spmdguard.testing import SimulatedWorld, fault_point

pytestmark = pytest.mark.filterwarnings("ignore:torch.distributed is disabled")
NUM_STEPS = 3


def save_in_a_loop(directory: Path) -> int:
    """Save three checkpoints with DCP; the step that the newest complete one holds."""
    for step in range(1, NUM_STEPS + 1):

        def save_state(folder: Path, step: int = step) -> None:
            dcp.save({"step": torch.tensor(step)}, checkpoint_id=folder)

        spmdguard.save_checkpoint(
            directory, step=step, save_state=save_state, write_metadata=lambda _: fault_point("metadata")
        )
        if spmdguard.sync_should_stop():
            break
    return newest(directory)


def newest(directory: Path) -> int:
    """The step inside the newest complete checkpoint, read back with DCP."""
    found = spmdguard.latest_checkpoint(directory)
    assert found is not None
    state = {"step": torch.tensor(0)}
    dcp.load(state, checkpoint_id=found, no_dist=True)
    return int(state["step"])


@pytest.mark.parametrize("seed", range(3))
def test_checkpoints_are_saved_together(tmp_path: Path, seed: int) -> None:
    """Without a failure every rank finds the last step."""
    assert SimulatedWorld(3, seed).run(save_in_a_loop, tmp_path) == [NUM_STEPS] * 3


def test_failing_metadata_stops_all_ranks_and_keeps_the_last_checkpoint(tmp_path: Path) -> None:
    """Metadata of step 2 fails on the main rank: all stop there, step 1 is the newest complete one."""
    world = SimulatedWorld(3)
    world.fail(0, at="metadata", nth=2, error=OSError("disk full"))
    assert world.run(save_in_a_loop, tmp_path) == [1, 1, 1]


@pytest.mark.parametrize("nth", range(8, 32, 3))
@pytest.mark.parametrize("rank", [0, 1])
def test_a_kill_at_any_operation_loses_no_complete_checkpoint(tmp_path: Path, rank: int, nth: int) -> None:
    """Killed at its nth operation: what was the newest complete checkpoint then, or a newer one, loads."""
    saved: list[int] = []

    def save_and_note(directory: Path) -> None:
        for step in range(1, NUM_STEPS + 1):

            def save_state(folder: Path, step: int = step) -> None:
                dcp.save({"step": torch.tensor(step)}, checkpoint_id=folder)

            spmdguard.save_checkpoint(directory, step=step, save_state=save_state)
            saved.append(step)

    world = SimulatedWorld(2, seed=nth)
    world.kill(rank, nth=nth)
    outcomes = world.outcomes(save_and_note, tmp_path)
    assert outcomes[rank].killed
    if saved:
        assert newest(tmp_path) >= max(saved)
