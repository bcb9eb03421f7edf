"""Tests of one's own training code on simulated ranks: no processes, no GPUs, no timeouts.

    pytest docs/examples/test_training_simulated.py

The first two test the guarded script beside this file; the third shows what its unguarded twin would do.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import ddp_guarded
import ddp_unguarded
import pytest
import torch
import torch.distributed as dist

import spmdguard
from spmdguard.testing import CollectiveMismatch, SimulatedWorld


def arguments(output: Path, fail_upload_at: int = 0) -> argparse.Namespace:
    return argparse.Namespace(
        epochs=2, batch_size=16, output=output, fail_upload_at=fail_upload_at, timeout=600.0
    )


def test_a_failing_upload_stops_all_ranks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The upload fails in step 3: on five schedules, both ranks stop after it and only rank 0 raises."""
    given = arguments(tmp_path, fail_upload_at=3)
    for seed in range(5):
        world = SimulatedWorld(ranks=2, seed=seed, initialized=False)
        main, other = world.outcomes(spmdguard.run, lambda: ddp_guarded.train(given))
        assert str(main.error) == "metrics server refused step 3"
        assert other.ok
        assert "finished step 4" not in capsys.readouterr().out


def test_a_full_disk_at_the_end_hangs_nobody(tmp_path: Path) -> None:
    """Writing the weights fails on the main rank: the others end well."""
    world = SimulatedWorld(ranks=4, initialized=False)

    def fail_to_write(*_: object) -> None:
        raise OSError("no space left")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch, "save", fail_to_write)
        outcomes = world.outcomes(spmdguard.run, lambda: ddp_guarded.train(arguments(tmp_path)))
    assert [str(outcomes[0].error), *(each.ok for each in outcomes[1:])] == [
        "no space left",
        True,
        True,
        True,
    ]


def test_the_unguarded_script_would_hang(tmp_path: Path) -> None:
    """The same failure without spmdguard is found at once, with the lines of both ranks."""
    given = arguments(tmp_path, fail_upload_at=3)
    with pytest.raises(CollectiveMismatch) as caught:
        SimulatedWorld(ranks=2).run(ddp_unguarded.train, given)
    assert all("ddp_unguarded.py:" in text for text in caught.value.calls.values())


@pytest.mark.spmd(ranks=4, seeds=3)
def test_the_mean_is_the_same_on_every_rank() -> None:
    """The marker runs the test itself on every rank, once for each seed."""
    assert ddp_guarded.mean_over_ranks(torch.tensor(float(dist.get_rank()))) == 1.5
