"""The four phases on real ranks: real state, and a failure in each phase on each rank."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ..processes import Ranks, Zygote

pytestmark = pytest.mark.processes
MAIN_PHASES = ["mkdir", "metadata", "manifest", "full device", "fsync", "rename", "local save"]
TIDYING_PHASES = ["retention", "pointer"]


def lines(ended: Ranks) -> list[list[str]]:
    """The output of every rank, where all ended well."""
    assert [0] * len(ended.ranks) == ended.codes, ended.report()
    return [each.out.splitlines() for each in ended.ranks]


def test_real_state_is_saved_and_loaded(zygote: Zygote, tmp_path: Path) -> None:
    """DDP and FSDP2 through DCP, also asynchronous, torch.save and an engine's own save come back equal."""
    expected = ["ddp save True", "fsdp2 save True", "ddp async_save True", "plain True step-00000007"]
    expected[3:3] = ["background True"]
    expected.append("engine state 3")
    ended = zygote.run("saving_models:save_everything", ranks=2, timeout_s=120, folder=tmp_path)
    assert [expected, expected] == lines(ended)


def test_a_failed_phase_of_the_main_rank_skips_the_save_together(zygote: Zygote, tmp_path: Path) -> None:
    """All ranks get None in that step, the main rank keeps the error, the older checkpoint stays."""
    ended = zygote.run(
        "saving:fail_in_turn", ranks=2, timeout_s=90, folder=tmp_path, phases=MAIN_PHASES, failing=0
    )
    main, other = lines(ended)
    for phase in MAIN_PHASES:
        steps = [f"{phase} 0 step-00000000", f"{phase} 1 step-00000001", f"{phase} 2 None"]
        for said in (main, other):
            assert steps == [line for line in said if line.startswith(f"{phase} ")], ended.report()
        errors = [line for said in (main, other) for line in said if line.startswith(f"deferred {phase} ")]
        assert all(line.endswith(" step-00000001 []") for line in errors), errors
        assert ("Boom" in errors[0] or "OSError" in errors[0]) and " None step-" in errors[1]


def test_a_failed_phase_after_publishing_keeps_the_checkpoint(zygote: Zygote, tmp_path: Path) -> None:
    """Where only retention or the pointer failed, all ranks get the checkpoint, and the error is deferred."""
    ended = zygote.run(
        "saving:fail_in_turn", ranks=2, timeout_s=90, folder=tmp_path, phases=TIDYING_PHASES, failing=0
    )
    main, other = lines(ended)
    for phase in TIDYING_PHASES:
        for said in (main, other):
            assert f"{phase} 2 step-00000002" in said, ended.report()
        assert any(line.startswith(f"deferred {phase} PermissionError") for line in main), ended.report()


def test_deferred_errors_of_another_rank_drop_the_save(zygote: Zygote, tmp_path: Path) -> None:
    """Rank-local work inside save_state fails on rank 1: no rank takes the checkpoint for complete."""
    ended = zygote.run(
        "saving:fail_in_turn", ranks=2, timeout_s=60, folder=tmp_path, phases=["local save"], failing=1
    )
    main, other = lines(ended)
    assert main[-2:] == ["local save 2 None", "deferred local save None step-00000001 []"]
    assert other[-1].startswith("deferred local save Boom('local save on rank 1')")


@pytest.mark.parametrize("failing", [0, 1])
def test_an_error_of_save_state_is_raised_at_once(zygote: Zygote, tmp_path: Path, failing: int) -> None:
    """The rank on which save_state raises ends with that error; the other names it; the older one stays."""
    ended = zygote.run(
        "saving:fail_in", ranks=2, timeout_s=40, folder=tmp_path, phase="save", failing=failing
    )
    assert ([each.code for each in ended.ranks], ended.hung) == ([1, 1], []), ended.report()
    assert f"Boom: save on rank {failing}" in ended[failing].err
    assert "in collective 'save_checkpoint'" in ended[failing].err
    assert f"rank {failing} failed first" in ended[1 - failing].err, ended.report()
    published = [path.name for path in (tmp_path / "saved").iterdir() if path.name.startswith("step-")]
    assert published == ["step-00000001"]


def test_a_deferred_failure_ends_the_run_with_its_cause(zygote: Zygote, tmp_path: Path) -> None:
    """Under run(), a full disk on the main rank ends it with that error after an agreed stop."""
    ended = zygote.run("saving:fail_in", ranks=2, timeout_s=40, folder=tmp_path, phase="mkdir", failing=0)
    assert [each.code for each in ended.ranks] == [1, 0], ended.report()
    assert "OSError: [Errno 28] No space left on device" in ended[0].err
    assert "spmdguard: rank 0 failed" in ended[0].err


def test_a_directory_without_permission_skips_the_save_together(zygote: Zygote, tmp_path: Path) -> None:
    """Where the main rank may not write, no rank saves, and only the main rank ends with the error."""
    (tmp_path / "locked").mkdir(mode=0o555)
    ended = zygote.run("saving:save_on", ranks=2, folder=tmp_path, directory="locked", as_nobody=True)
    assert [each.code for each in ended.ranks] == [1, 0], ended.report()
    assert [each.out for each in ended.ranks] == ["step 1 None\n"] * 2
    assert "PermissionError: [Errno 13]" in ended[0].err


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one megabyte."""
    disk = tmp_path / "disk"
    disk.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "spmdguard-test", str(disk)],
        capture_output=True,
        timeout=20,
        check=False,
    )
    if done.returncode:
        pytest.skip("needs the right to mount a tmpfs")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], timeout=20, check=True)


@pytest.mark.parametrize("everywhere", [False, True])
def test_a_full_disk_skips_the_save_and_frees_the_space(
    zygote: Zygote, small_disk: Path, everywhere: bool
) -> None:
    """ENOSPC of a real file system in rank-local work: None everywhere, and no half checkpoint stays."""
    ended = zygote.run(
        "saving:save_on", ranks=2, directory=str(small_disk), num_bytes=2_000_000, everywhere=everywhere
    )
    assert [1, int(everywhere)] == [each.code for each in ended.ranks], ended.report()
    assert [each.out for each in ended.ranks] == ["step 1 None\n"] * 2
    assert "OSError: [Errno 28] No space left on device" in ended[0].err
    assert list(small_disk.iterdir()) == []


def test_a_read_only_disk_skips_the_save_together(zygote: Zygote, small_disk: Path) -> None:
    """EROFS of a real file system: None on every rank, and only the main rank ends with the error."""
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], timeout=20, check=True)
    ended = zygote.run("saving:save_on", ranks=2, directory=str(small_disk))
    assert [each.code for each in ended.ranks] == [1, 0], ended.report()
    assert "OSError: [Errno 30] Read-only file system" in ended[0].err


def test_different_steps_are_an_error_on_every_rank(zygote: Zygote, tmp_path: Path) -> None:
    """Ranks that come with different steps all raise, and leave nothing."""
    expected = ["step must be the same on every rank, got rank 0: 0, rank 1: 1"]
    ended = zygote.run("saving:differ_in_step", ranks=2, folder=tmp_path)
    assert [expected, expected] == lines(ended)
    assert list((tmp_path / "saved").iterdir()) == []


def test_a_directory_that_is_not_shared_is_told(zygote: Zygote, tmp_path: Path) -> None:
    """A rank that does not see the folder defers an error that says so, and all skip the save."""
    main, other = lines(zygote.run("saving:save_unseen", ranks=2, folder=tmp_path))
    assert main == ["None None", "[] True"]
    assert other[0].startswith("None rank 1 does not see ")
    assert other[0].endswith("must be on a file system that all ranks share")


def test_groups_save_apart(zygote: Zygote, tmp_path: Path) -> None:
    """Two sub-groups save at the same time; the first rank of each is its main one."""
    ended = zygote.run("saving:save_in_sub_groups", ranks=4, timeout_s=60, folder=tmp_path)
    first = ["['rank0.pt', 'rank1.pt', 'spmdguard_manifest.json']", "True"]
    second = ["['rank2.pt', 'rank3.pt', 'spmdguard_manifest.json']", "True"]
    assert [first, first, second, second] == lines(ended)


@pytest.mark.parametrize("fails", [False, True])
def test_each_host_makes_its_files_durable(zygote: Zygote, tmp_path: Path, fails: bool) -> None:
    """A write that is lost when the other host flushes its files makes all ranks drop the save."""
    ended = zygote.run("saving:save_on_two_hosts", ranks=4, timeout_s=60, folder=tmp_path, fails=fails)
    states = ["rank0.pt", "rank1.pt", "rank2.pt", "rank3.pt"]
    result = "None" if fails else "step-00000001"
    plain = [f"{result} False"]
    main = plain if fails else [f"synced {[*states, 'spmdguard_manifest.json']}", *plain]
    assert lines(ended) == [main, plain, [f"synced {states}", f"{result} {fails}"], plain]
