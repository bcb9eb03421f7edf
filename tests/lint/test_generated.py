"""The linter on generated programs: no mismatch missed, few alarms without one.

2,000 programs are read each time. ``python -m tests.lint.generated.run`` is the long run; ``SPMDGUARD_LONG=1``
runs 20,000 programs of each fragment here.
"""

from __future__ import annotations

import os

import pytest

from tests.lint.generated.run import run

LONG = os.environ.get("SPMDGUARD_LONG") == "1"


SEEDS = [7, *(pytest.param(seed, marks=pytest.mark.once) for seed in range(8, 13))]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("full", "count"), [(False, 134), (True, 200)], ids=["basic", "full"])
def test_no_mismatch_is_missed(full: bool, count: int, seed: int) -> None:
    """Every program in which some rank waits for ever gets a report; hardly any other does."""
    tally = run(count, seed=seed, full=full)
    assert (tally.missed, tally.kinds["invalid"]) == (0, 0), tally.examples
    assert tally.false_share <= 0.05, tally.text()


@pytest.mark.long
@pytest.mark.skipif(not LONG, reason="set SPMDGUARD_LONG=1")
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("full", [False, True], ids=["basic", "full"])
def test_no_mismatch_is_missed_in_the_long_run(full: bool) -> None:
    """The same for 20,000 programs of each fragment."""
    tally = run(20_000, seed=1, full=full)
    assert (tally.missed, tally.kinds["invalid"]) == (0, 0), tally.examples
    assert tally.false_share <= 0.05, tally.text()
