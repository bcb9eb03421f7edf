"""The newest complete checkpoint: what is passed over, what is waited for, the same on every rank."""

from __future__ import annotations

import json
import logging
import os
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest

import spmdguard
from spmdguard.checkpoint import files
from spmdguard.checkpoint.manifest import MANIFEST

from ..processes import Zygote
from .test_retention import save


def damage_nothing(folder: Path) -> None:
    pass


def delete_manifest(folder: Path) -> None:
    (folder / MANIFEST).unlink()


def cut_manifest(folder: Path) -> None:
    (folder / MANIFEST).write_text((folder / MANIFEST).read_text()[:20])


def list_as_manifest(folder: Path) -> None:
    (folder / MANIFEST).write_text("[]")


def change_step(folder: Path) -> None:
    manifest = json.loads((folder / MANIFEST).read_text())
    (folder / MANIFEST).write_text(json.dumps({**manifest, "step": 9}))


def delete_file(folder: Path) -> None:
    (folder / "state").unlink()


def cut_file(folder: Path) -> None:
    (folder / "state").write_text("")


def file_becomes_folder(folder: Path) -> None:
    (folder / "state").unlink()
    (folder / "state").mkdir()


DAMAGES = {
    delete_manifest: f"it has no {MANIFEST}",
    cut_manifest: f"its {MANIFEST} cannot be read",
    list_as_manifest: f"its {MANIFEST} is of another format",
    change_step: f"its {MANIFEST} is of step 9",
    delete_file: "state cannot be read (No such file or directory)",
    cut_file: "state has 0 bytes instead of 1",
    file_becomes_folder: "state is no file",
}


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda each: each.__name__)
def test_damaged_checkpoints_are_passed_over(
    tmp_path: Path, damage: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """The newest that is complete is found, and the log says what is wrong with the newer one."""
    good, bad = save(tmp_path, 1), save(tmp_path, 2)
    assert spmdguard.latest_checkpoint(tmp_path) == bad
    damage(bad)
    with caplog.at_level(logging.WARNING, "spmdguard"):
        assert spmdguard.latest_checkpoint(tmp_path) == good
    assert f"{bad} is passed over: {DAMAGES[damage]}" in caplog.text


def test_nothing_and_foreign_things_are_no_checkpoints(tmp_path: Path) -> None:
    """No directory, an empty one, foreign folders, files with a checkpoint's name, unfinished saves: None."""
    assert spmdguard.latest_checkpoint(tmp_path / "missing") is None
    assert spmdguard.latest_checkpoint(tmp_path) is None
    (tmp_path / "step-00000001").write_text("a file")
    for name in ("step-00000002", "best", ".spmdguard-saving-step-00000003-x", ".spmdguard-trash-x"):
        (tmp_path / name).mkdir()
    assert spmdguard.latest_checkpoint(tmp_path) is None


def test_a_complete_checkpoint_under_another_name_is_foreign(tmp_path: Path) -> None:
    """A copy keeps its step: renamed to another step it is not taken; beside other files it is."""
    first = save(tmp_path, 1)
    shutil.copytree(first, tmp_path / "step-00000007")
    shutil.copytree(first, tmp_path / ".spmdguard-saving-step-00000008")
    (first / "evaluation.txt").write_text("added later")
    assert spmdguard.latest_checkpoint(tmp_path) == first


def test_checksums_find_changed_bytes(tmp_path: Path) -> None:
    """A file of the right size with other bytes is found where checksums were recorded and are asked for."""
    saved = [
        spmdguard.save_checkpoint(
            tmp_path, step=step, save_state=lambda path: (path / "state").write_text("abc"), checksum=True
        )
        for step in (1, 2)
    ]
    assert saved[1] is not None
    (saved[1] / "state").write_text("abd")
    assert spmdguard.latest_checkpoint(tmp_path) == saved[1]
    assert spmdguard.latest_checkpoint(tmp_path, checksum=True) == saved[0]


def test_links_and_sub_folders_belong_to_a_checkpoint(tmp_path: Path) -> None:
    """Files at any depth are verified; a link counts as itself."""

    def write(path: Path) -> None:
        (path / "a" / "b").mkdir(parents=True)
        (path / "a" / "b" / "state").write_text("x")
        (path / "link").symlink_to("a")
        (path / "a" / "dangling").symlink_to("nowhere")

    saved = spmdguard.save_checkpoint(tmp_path, step=1, save_state=write)
    assert saved is not None and spmdguard.latest_checkpoint(tmp_path) == saved
    (saved / "a" / "b" / "state").unlink()
    assert spmdguard.latest_checkpoint(tmp_path) is None


def test_a_rename_that_becomes_visible_late_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last save left its name: a listing that does not show it yet is asked again, in bounded time."""
    old, new = save(tmp_path, 1), save(tmp_path, 2)
    hidden = tmp_path.parent / "hidden"
    new.rename(hidden)
    looks: list[Path] = []
    look_for = files.look_for

    def look_late(path: Path) -> bool:
        looks.append(path)
        if len(looks) == 3:
            hidden.rename(new)
        return look_for(path)

    monkeypatch.setattr(files, "look_for", look_late)
    assert spmdguard.latest_checkpoint(tmp_path, wait_timeout=30) == new
    assert looks == [new] * 3
    shutil.rmtree(new)
    assert spmdguard.latest_checkpoint(tmp_path, wait_timeout=0.05) == old


def test_an_old_announcement_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the last save was long ago, its folder would be visible by now: it was deleted."""
    old, new = save(tmp_path, 1), save(tmp_path, 2)
    shutil.rmtree(new)
    os.utime(tmp_path / ".spmdguard-latest", (1, 1))
    monkeypatch.setattr(files, "wait_until", None)
    assert spmdguard.latest_checkpoint(tmp_path) == old


def test_waiting_is_bounded_and_wakes() -> None:
    """``wait_until`` sees what another thread does, and gives up in time."""
    event = threading.Event()
    threading.Timer(0.05, event.set).start()
    assert files.wait_until(event.is_set, 30)
    assert not files.wait_until(lambda: False, 0.05)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"step": -1}, "step must be an int of at least 0, got -1"),
        ({"step": True}, "step must be an int of at least 0, got True"),
        ({"step": 1.0}, "step must be an int of at least 0, got 1.0"),
        ({"keep_last": 0}, "keep_last must be an int of at least 1, got 0"),
        ({"keep_last": 1, "keep_every": 0}, "keep_every must be an int of at least 1, got 0"),
        ({"keep_every": 3}, "keep_every=3 needs keep_last"),
        ({"save_state": 3}, "save_state must be callable, got 3"),
        ({"write_metadata": 3}, "write_metadata must be callable, got 3"),
    ],
)
def test_wrong_arguments_are_refused(tmp_path: Path, arguments: dict[str, Any], message: str) -> None:
    """Before anything is written, with the value in the message."""
    with pytest.raises((ValueError, TypeError)) as caught:
        spmdguard.save_checkpoint(tmp_path, **{"step": 1, "save_state": lambda path: None, **arguments})
    assert message in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("value", [-1, float("nan")])
def test_a_wrong_timeout_is_refused(tmp_path: Path, value: float) -> None:
    """A negative number of seconds, or none at all."""
    with pytest.raises(ValueError, match="wait_timeout must be"):
        spmdguard.latest_checkpoint(tmp_path, wait_timeout=value)


def test_saving_inside_rank_local_work_is_refused(tmp_path: Path) -> None:
    """A checkpoint is collective: begun in rank-local work it does not start."""
    spmdguard.try_or_defer(save, tmp_path, 1)
    assert isinstance(spmdguard.deferred_error(), spmdguard.CollectiveInRankLocalError)
    assert list(tmp_path.iterdir()) == []


def test_everything_is_durable_before_it_gets_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each file and folder is synced before the rename, the directory after it, nothing is written between."""
    calls: list[tuple[str, str]] = []
    fsync, rename = os.fsync, os.rename

    def log_fsync(descriptor: int) -> None:
        calls.append(("fsync", Path(os.readlink(f"/proc/self/fd/{descriptor}")).name))
        fsync(descriptor)

    def log_rename(source: Any, target: Any, **options: Any) -> None:
        calls.append(("rename", Path(target).name))
        rename(source, target, **options)

    monkeypatch.setattr(os, "fsync", log_fsync)
    monkeypatch.setattr(os, "rename", log_rename)
    save(tmp_path, 1)
    renamed = calls.index(("rename", "step-00000001"))
    assert {call for call, _ in calls[:renamed]} == {"fsync"}
    folder, *files = sorted(name for _, name in calls[:renamed])
    assert files == [MANIFEST, "state"]
    assert folder.startswith(".spmdguard-saving-step-00000001-")
    assert calls[renamed + 1] == ("fsync", tmp_path.name)


@pytest.mark.processes
def test_every_rank_finds_what_the_main_rank_finds(zygote: Zygote, tmp_path: Path) -> None:
    """Where ranks see different directories, all raise and say which rank does not see it."""
    save(tmp_path / "saved", 3)
    ended = zygote.run("saving:look", ranks=2, folder=tmp_path, directory="saved")
    assert [each.out for each in ended.ranks] == ["step-00000003\n"] * 2, ended.report()
    ended = zygote.run("saving:look", ranks=2, folder=tmp_path, directory="saved", hidden_from=1)
    main, other = (each.out for each in ended.ranks)
    assert main == "OtherRanksFailed rank 1 failed in rank-local work\n", ended.report()
    assert other.startswith("FileNotFoundError rank 1 does not see "), ended.report()
