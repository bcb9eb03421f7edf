"""Killed at any instant, a run loses no complete checkpoint, and none that is half written is taken."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import spmdguard
from spmdguard.checkpoint.manifest import find_problem
from spmdguard.checkpoint.names import parse_published

from ..processes import Ranks, Zygote
from ..processes.zygote import ROOT

pytestmark = pytest.mark.processes
NUM_INSTANTS = 300
NUM_QUICK = 3
LONGEST_S = 0.5
WHO = ("main", "other", "both")


def check_newest(folder: Path, reached: int) -> int:
    """The newest checkpoint is complete, of one step, and no older than what was reported as saved."""
    torch = pytest.importorskip("torch")
    found = spmdguard.latest_checkpoint(folder)
    if found is None:
        assert reached == 0
        return 0
    published = parse_published(found.name)
    assert published is not None and published.step >= reached
    assert find_problem(found, published.step) is None
    for rank in (0, 1):
        numbers = torch.load(found / f"rank{rank}.pt", weights_only=True)
        assert numbers.shape == (5000,) and numbers.unique().tolist() == [published.step]
    assert (found / "note.txt").read_text() == f"step {published.step}"
    return published.step


def last_saved(ended: Ranks) -> int:
    steps = [int(line.split()[1]) for line in ended[0].out.splitlines() if line.startswith("saved ")]
    return max(steps, default=0)


def kill_in_turn(zygote: Zygote, folder: Path, num_instants: int, seed: int) -> dict[str, Any]:
    """Run, kill at a random instant, check, run again in the same directory; what happened."""
    chance = random.Random(seed)
    reached, num_killed, num_steps = 0, 0, 0
    for number in range(num_instants):
        who = WHO[number % len(WHO)]
        delay_s = chance.uniform(0, LONGEST_S)
        ranks = {"main": ["0"], "other": ["1"], "both": ["0", "1"]}[who]
        ended = zygote.run(
            "saving:save_until_killed",
            ranks=2,
            timeout_s=90,
            folder=folder,
            delays_s=dict.fromkeys(ranks, delay_s),
            first=reached + 1,
        )
        assert ended.hung == [], ended.report()
        codes = [ended[int(rank)].code for rank in ranks]
        assert codes == [-9] * len(ranks), ended.report()
        num_killed += 1
        before = reached
        reached = check_newest(folder / "saved", max(reached, last_saved(ended)))
        num_steps += reached - before
        saving = list((folder / "saved").glob(".spmdguard-saving-*"))
        assert len(saving) <= 1, "folders of dead runs pile up"
    return {"killed": num_killed, "steps saved": num_steps, "last step": reached}


def test_every_kill_leaves_the_newest_checkpoint(zygote: Zygote, tmp_path: Path) -> None:
    """Two ranks, killed at a few instants: the newest checkpoint loads; the next run goes on from it."""
    outcome = kill_in_turn(zygote, tmp_path, NUM_QUICK, seed=1)
    assert outcome["killed"] == NUM_QUICK
    assert outcome["steps saved"] > 0


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_300_random_kills(zygote: Zygote, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same at 300 random instants of saving in a loop."""
    outcome = kill_in_turn(zygote, tmp_path, NUM_INSTANTS, seed=2)
    with capsys.disabled():
        print("\n", outcome)
    assert outcome["killed"] == NUM_INSTANTS


def test_a_kill_before_any_call_that_touches_files(tmp_path: Path) -> None:
    """A process is killed before each single call in turn: the newest one is complete, nothing piles up."""
    done = subprocess.run(
        [sys.executable, "-m", "runtime.scenarios.killing"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests'}"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    words = done.stdout.split()
    assert words[:3] == ["code", "0", "kills"] and int(words[3]) > 60
