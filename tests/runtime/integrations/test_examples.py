"""Each framework's example under torchrun: a report that fails on the main rank stops both ranks together."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from .launching import launch

pytestmark = [pytest.mark.processes, pytest.mark.timeout(300)]
PACKAGES = {
    "accelerate_guarded.py": "accelerate",
    "fabric_guarded.py": "lightning",
    "lightning_guarded.py": "lightning",
    "transformers_guarded.py": "transformers",
    "deepspeed_guarded.py": "deepspeed",
    "titan_style.py": "torch",
}

REPORTS_LATER = ("lightning_guarded.py", "transformers_guarded.py")
"""Their trainers report a step after they have called the callback that agrees."""


def require(package: str) -> None:
    """Skip where the package is absent; looked up without importing it, which takes seconds."""
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")


def outputs(example: str, folder: Path) -> list[str]:
    return ["--output", str(folder)] if example in ("deepspeed_guarded.py", "titan_style.py") else []


@pytest.mark.parametrize(
    "example",
    [
        pytest.param(
            name, marks=pytest.mark.long if name == "titan_style.py" else []
        )  # preemption runs it too
        for name in PACKAGES
    ],
)
def test_a_failing_report_stops_both_ranks(example: str, tmp_path: Path) -> None:
    """Both leave after the same step with the same reason; the launcher names the original error."""
    require(PACKAGES[example])
    launched = launch(example, "--fail-at", "3", *outputs(example, tmp_path))
    assert launched.code == 1, launched.out
    left, last = launched.left, 4 if example in REPORTS_LATER else 3
    assert [(rank, step) for rank, step, _ in left] == [(0, last), (1, last)], launched.out
    assert left[0][2] == left[1][2], launched.out
    assert left[0][2].startswith("rank 0: deferred OSError: "), launched.out
    root_cause = launched.out.partition("Root Cause (first observed failure):")[2]
    assert "OSError: " in root_cause and "rank      : 0" in root_cause, launched.out


@pytest.mark.long
@pytest.mark.parametrize("example", PACKAGES)
def test_without_a_failure_it_ends_well(example: str, tmp_path: Path) -> None:
    """Both ranks make all steps, and the launcher's exit code is 0."""
    require(PACKAGES[example])
    launched = launch(example, *outputs(example, tmp_path))
    assert launched.code == 0, launched.out
    assert [(rank, reason) for rank, _, reason in launched.left] == [(0, "None"), (1, "None")], launched.out


def test_preemption_saves_and_goes_on(tmp_path: Path) -> None:
    """SIGTERM to rank 1 in step 2: both save step 2 and end well; the next run goes on from there."""
    require("torch")
    first = launch("titan_style.py", "--preempt-at", "2", "--output", str(tmp_path))
    assert (first.code, first.left) == (
        0,
        [(0, 2, "rank 1: received SIGTERM"), (1, 2, "rank 1: received SIGTERM")],
    ), first.out
    second = launch("titan_style.py", "--steps", "4", "--output", str(tmp_path))
    assert (second.code, second.left) == (0, [(0, 4, "None"), (1, 4, "None")]), second.out
    assert "step 2:" not in second.out and "step 3:" in second.out
