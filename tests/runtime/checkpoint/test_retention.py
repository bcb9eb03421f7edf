"""What is kept, whose folders are abandoned, and what a name says."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import spmdguard
from spmdguard.checkpoint import names
from spmdguard.checkpoint.names import Published, is_abandoned, new_saving_name, parse_published
from spmdguard.checkpoint.retention import choose_superseded

DAY_S = 86400.0


def save(folder: Path, step: int, **options: int) -> Path:
    saved = spmdguard.save_checkpoint(
        folder, step=step, save_state=lambda path: (path / "state").write_text(str(step)), **options
    )
    assert saved is not None
    return saved


def kept(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))


@pytest.mark.parametrize(
    ("options", "steps"),
    [
        ({}, [0, 1, 2, 3, 4, 5, 6]),
        ({"keep_last": 2}, [5, 6]),
        ({"keep_last": 1, "keep_every": 3}, [0, 3, 6]),
        ({"keep_last": 3, "keep_every": 4}, [0, 4, 5, 6]),
    ],
)
def test_old_checkpoints_go(tmp_path: Path, options: dict[str, int], steps: list[int]) -> None:
    """The last ones stay, and those that keep_every divides; without keep_last all stay."""
    for step in range(7):
        save(tmp_path, step, **options)
    assert kept(tmp_path) == [f"step-{step:08d}" for step in steps]


def oracle(steps: list[Published], newest: Published, last: int | None, every: int | None) -> set[Published]:
    """One rule at a time, for what is kept."""
    best = {max(each for each in steps if each.step == step) for step in {each.step for each in steps}}
    best = {newest if each.step == newest.step else each for each in best}
    if last is None:
        return best
    highest = set(sorted(best)[-last:])
    divided = {each for each in best if every is not None and each.step % every == 0}
    return highest | divided | {newest}


@given(
    st.lists(st.tuples(st.integers(0, 12), st.integers(0, 2)), min_size=1, max_size=12, unique=True),
    st.integers(0, 11),
    st.none() | st.integers(1, 5),
    st.none() | st.integers(1, 5),
)
def test_what_goes_is_what_the_rules_say(
    pairs: list[tuple[int, int]], index: int, last: int | None, every: int | None
) -> None:
    """For any checkpoints and settings the choice equals the plain rules, and never takes the newest."""
    complete = [Published(*pair) for pair in pairs]
    newest = complete[index % len(complete)]
    every = None if last is None else every
    gone = choose_superseded(complete, newest, last, every)
    assert set(complete) - set(gone) == oracle(complete, newest, last, every)
    assert newest not in gone


def test_saving_a_step_again_replaces_it(tmp_path: Path) -> None:
    """The new one gets a name of its own before the old one goes; the newest is found."""
    save(tmp_path, 5)
    second = save(tmp_path, 5)
    third = save(tmp_path, 5)
    assert (second.name, third.name) == ("step-00000005.1", "step-00000005.2")
    assert kept(tmp_path) == ["step-00000005.2"]
    assert spmdguard.latest_checkpoint(tmp_path) == third


def test_foreign_and_incomplete_folders_are_kept(tmp_path: Path) -> None:
    """Retention deletes only complete checkpoints of this package."""
    for name in ("step-00000001", "step-00000002", "best", "step-3"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "precious").write_text("mine")
    for step in (4, 5, 6):
        save(tmp_path, step, keep_last=1)
    assert kept(tmp_path) == ["best", "step-00000001", "step-00000002", "step-00000006", "step-3"]


@pytest.mark.parametrize("published", [Published(0), Published(123, 4), Published(10**12, 1)])
def test_names_are_read_back(published: Published) -> None:
    """A name says its step and attempt."""
    assert parse_published(published.name) == published


@pytest.mark.parametrize(
    "name",
    ["step-1", "step-000000001", "step-00000001.0", "step-00000001.", "step-", "x-step-00000001", "last"],
)
def test_other_names_are_foreign(name: str) -> None:
    """Only names exactly as this package writes them count."""
    assert parse_published(name) is None


def saving_folder(parent: Path, machine: str, pid: int, started: int) -> Path:
    folder = parent / f".spmdguard-saving-step-00000001-{machine}-{pid}-{started}-abc"
    folder.mkdir()
    (folder / "state").write_text("half")
    return folder


def test_whose_folders_are_abandoned(tmp_path: Path) -> None:
    """Dead processes' folders, this process's earlier ones, and trash; not of live ones or young foreign ones."""
    here, pid = names.machine(), os.getpid()
    parent = os.getppid()
    now_s = time.time()
    live = saving_folder(tmp_path, here, parent, names.start_time(parent))
    reused = saving_folder(tmp_path, here, parent, names.start_time(parent) + 1)
    own = saving_folder(tmp_path, here, pid, names.start_time(pid))
    dead_process = subprocess.Popen([sys.executable, "-c", ""])
    dead_process.wait(timeout=60)
    dead = saving_folder(tmp_path, here, dead_process.pid, 12345)
    foreign = saving_folder(tmp_path, "0" * 12, 1, 1)
    trash = tmp_path / names.new_trash_name()
    trash.mkdir()
    other = tmp_path / "step-00000001"
    other.mkdir()

    def judged(active: set[str], now_s: float) -> set[Path]:
        return {each for each in tmp_path.iterdir() if is_abandoned(each, active, now_s, DAY_S)}

    assert judged(set(), now_s) == {reused, own, dead, trash}
    assert judged({own.name}, now_s + 2 * DAY_S) == {reused, dead, trash, foreign}
    assert live.exists()


def test_a_save_cleans_up_after_dead_runs(tmp_path: Path) -> None:
    """The next save deletes abandoned folders and leaves those of a live process alone."""
    parent = os.getppid()
    live = saving_folder(tmp_path, names.machine(), parent, names.start_time(parent))
    saving_folder(tmp_path, names.machine(), parent, names.start_time(parent) + 7)
    (tmp_path / names.new_trash_name()).mkdir()
    save(tmp_path, 1)
    assert {path.name for path in tmp_path.iterdir()} == {"step-00000001", ".spmdguard-latest", live.name}


def test_fresh_names_differ() -> None:
    """No two saves share a folder, and the owner can be read from the name."""
    made = [new_saving_name(step) for step in (1, 1, 2)]
    assert all(a != b for a, b in itertools.combinations(made, 2))
    assert all(f"-{os.getpid()}-" in name for name in made)
