"""The numbered guarantees of the design, each on real gloo ranks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .checkpoint.test_kills import check_newest, last_saved
from .processes import Ranks, Zygote

pytestmark = pytest.mark.processes


def lines(ended: Ranks) -> list[list[str]]:
    """The output of every rank, where all ended well."""
    assert [0] * len(ended.ranks) == ended.codes, ended.report()
    return [each.out.splitlines() for each in ended.ranks]


def test_guarantee_1_a_deferred_exception_never_leaves(zygote: Zygote) -> None:
    """Every kind of rank-local work keeps its Exception and meets the others; interrupts and exits leave."""
    left = ["left True"] * 3
    failing, other = lines(zygote.run("promises:deferred_exceptions_stay", ranks=2))
    assert ["met 2 deferred True", *left] == failing
    assert ["met 2 deferred False", *left] == other


def test_guarantee_2_the_first_error_wins(zygote: Zygote) -> None:
    """The first error keeps its traceback but frees its tensors; a later one is counted in a note."""
    failing, other = lines(zygote.run("promises:first_error_wins", ranks=2))
    assert (failing, other) == (["freed True", "first use spmdguard: 1 later error "], [])


def test_guarantee_3_the_original_is_raised_once(zygote: Zygote) -> None:
    """The original object is raised and cleared, also from a thread; a forked child starts empty."""
    expected = ["child 10", "same True raise_it", "cleared True"]
    assert [expected, expected] == lines(zygote.run("promises:original_is_raised", ranks=2))


def test_guarantee_4_no_collective_starts_in_rank_local_work(zygote: Zygote) -> None:
    """It raises an error that names operation, group, region and line, is deferred, and the ranks meet."""
    failing, other = lines(zygote.run("promises:collectives_do_not_start", ranks=2))
    named = "allreduce group 'default_pg' (ranks 0-1) rank-local 'log metrics' True"
    assert ([named, "met 2 True"], ["met 2 True"]) == (failing, other)


def test_guarantee_5_an_error_of_a_collective_leaves_at_once(zygote: Zygote) -> None:
    """Raised unchanged with a note; later collectives refuse from the first failure, in any wrapping."""
    ended = zygote.run("promises:collective_errors_leave", ranks=2)
    assert ended[0].code == 1, ended.report()
    note = "spmdguard: raised by rank 0 in collective 'gather' "
    note += "(number 1 on this rank, process group sequence number 1)"
    first, *refused = ended[0].out.splitlines()
    assert first.startswith("unchanged True ") and note in first
    assert refused == ["refused gather ValueError: inside"] * 4
    assert ended[1].out.splitlines() == ["lost its partner"]


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_guarantee_6_all_ranks_stop_in_the_same_step(zygote: Zygote, ranks: int) -> None:
    """The same answer on every rank in the same step, and every rank knows who asked and why."""
    ended = zygote.run("agreeing:stop_loop", ranks=ranks, ask_rank=ranks - 1, ask_step=2)
    expected = [f"left in step 2 | rank {ranks - 1}: deferred OSError: upload"]
    assert [expected] * ranks == lines(ended)


@pytest.mark.parametrize(("rank_fails", "root"), [(True, "OSError: primary"), (False, "OSError: deferred")])
def test_guarantee_7_the_error_is_written_before_teardown(
    zygote: Zygote, tmp_path: Path, rank_fails: bool, root: str
) -> None:
    """stderr and torchelastic's file have the error before teardown begins, which ends in code 71."""
    ended = zygote.run(
        "promises:teardown_comes_last",
        ranks=2,
        timeout_s=20,
        env={"TORCHELASTIC_ERROR_FILE": str(tmp_path / "RANK.json")},
        rank_fails=rank_fails,
    )
    assert ended.codes == [71, 71], ended.report()
    for each in ended.ranks:
        assert root in each.err.partition("teardown begins")[0], ended.report()
        assert root == json.loads((tmp_path / f"{each.rank}.json").read_text())["message"]["message"]


@pytest.mark.parametrize("who", [[0], [0, 1]])
def test_guarantee_8_a_kill_leaves_the_newest_checkpoint(
    zygote: Zygote, tmp_path: Path, who: list[int]
) -> None:
    """Killed in the middle of saving, the newest complete checkpoint loads; the next run saves the next step."""
    ended = zygote.run(
        "saving:save_until_killed",
        ranks=2,
        timeout_s=60,
        folder=tmp_path,
        delays_s={str(rank): 0.3 for rank in who},
        first=1,
    )
    assert [ended[rank].code for rank in who] == [-9] * len(who), ended.report()
    reached = check_newest(tmp_path / "saved", last_saved(ended))
    again = zygote.run("promises:saves_one", ranks=2, timeout_s=60, folder=tmp_path, step=reached + 1)
    assert [[f"step-{reached + 1:08d} []"]] * 2 == lines(again)


def test_guarantee_8_a_failed_prepare_skips_the_save_together(zygote: Zygote, tmp_path: Path) -> None:
    """Where the main rank cannot prepare, no rank saves, the older checkpoint stays, the error is deferred."""
    ended = zygote.run("promises:skips_together", ranks=2, timeout_s=60, folder=tmp_path)
    main, other = lines(ended)
    assert main == ["step-00000001", "None state saved 1", "step-00000001", "NotADirectoryError"]
    assert other == ["step-00000001", "None state saved 1", "step-00000001", "NoneType"]
