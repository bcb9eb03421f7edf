"""Guarantee 6 and its neighbours: ranks agree, and an agreement that cannot be names who is missing."""

from __future__ import annotations

import re
from typing import Any

import pytest

from .processes import Zygote

pytestmark = pytest.mark.processes


@pytest.mark.parametrize("ranks", [1, 2, 4])
@pytest.mark.parametrize(
    ("options", "step"),
    [
        ({}, 3),
        ({"every_n_steps": 4}, 4),
        ({"overlap": True}, 4),
        ({"overlap": True, "every_n_steps": 2}, 6),
        ({"side": True}, 3),
    ],
)
def test_all_ranks_stop_in_the_same_step(
    zygote: Zygote, ranks: int, options: dict[str, Any], step: int
) -> None:
    """An error of one rank in step 3 ends the loop of every rank in the same step, and all know why."""
    asking = ranks - 1
    ended = zygote.run("agreeing:stop_loop", ranks=ranks, ask_rank=asking, **options)
    assert [0] * ranks == ended.codes, ended.report()
    expected = f"left in step {step} | rank {asking}: deferred OSError: upload\n"
    assert [expected] * ranks == [each.out for each in ended.ranks]


def test_reasons_of_several_ranks_are_told(zygote: Zygote) -> None:
    """Every rank learns which ranks asked, and their texts; a later question is answered anew."""
    ended = zygote.run("agreeing:several_ask", ranks=4, num_asking=2)
    assert ended.codes == [0] * 4, ended.report()
    text = "deferred OSError: upload"
    expected = f"True [(0, '{text}'), (1, '{text}')]\nTrue [0, 1]\nFalse\n"
    assert [expected] * 4 == [each.out for each in ended.ranks]


def test_texts_of_any_length_come_back_whole(zygote: Zygote) -> None:
    """Empty, short, long and very different texts, also such as no encoding knows, are the same on every rank."""
    texts = ["", "short", "x" * 508, "y" * 509, "\N{SNOWMAN}" * 508, "a \0 and \udcff", "z" * 100_000]
    ended = zygote.run("agreeing:exchange_texts", ranks=4, texts=texts)
    assert ended.codes == [0] * 4, ended.report()
    assert ["True\n" * len(texts)] * 4 == [each.out for each in ended.ranks]


def test_sub_groups_agree_for_themselves(zygote: Zygote) -> None:
    """A sub-group's verdict is its own and names global ranks; a rank outside the group is told so."""
    ended = zygote.run("agreeing:on_sub_groups", ranks=4)
    assert ended.codes == [0] * 4, ended.report()
    lines = [each.out.splitlines() for each in ended.ranks]
    assert [each[0] for each in lines] == ["half 0 True (1,)"] * 2 + ["half 1 False ()"] * 2
    assert [f"this rank (rank {rank}) is no member of the group given" for rank in range(4)] == [
        each[1] for each in lines
    ]


@pytest.mark.parametrize("operation", ["sync_should_stop", "barrier 'x'"])
def test_ranks_that_never_come_are_named(zygote: Zygote, operation: str) -> None:
    """After the timeout the ranks that came name those that did not, and communication is broken."""
    ended = zygote.run("agreeing:missing_ranks", ranks=4, operation=operation, missing=[1, 2])
    assert ended.hung == [], ended.report()
    expected = [
        f"{operation} [1, 2] ranks 1-2 did not come to {operation}",
        f"then {operation}",
    ]
    for rank in (0, 3):
        assert expected == ended[rank].out.splitlines(), ended.report()


def test_ranks_that_died_are_named_at_once(zygote: Zygote) -> None:
    """Where a missing rank's process has ended, the others learn it without the timeout.

    gloo tells the others one after the other, so that one of them may still wait when the first gives up.
    """
    ended = zygote.run(
        "agreeing:missing_ranks", ranks=3, operation="sync_should_stop", missing=[2], stay_s=0.0
    )
    for rank in (0, 1):
        named = re.match(r"sync_should_stop \[(?:[01], )?2\] ranks? ", ended[rank].out)
        assert named and "did not come to sync_should_stop" in ended[rank].out, ended.report()


@pytest.mark.parametrize(
    ("how", "saw"),
    [
        ("a call ahead", "rank 1 at call 2 met another rank at call 3"),
        ("another collective", "another collective answered rank 1 at call 2"),
    ],
)
def test_ranks_at_different_calls_are_told(zygote: Zygote, how: str, saw: str) -> None:
    """A rank that meets another call's number, or another collective's data, is told so at the meeting."""
    ended = zygote.run("agreeing:out_of_step", ranks=2, how=how)
    assert f"saw:   {saw}\n" == ended[1].out, ended.report()


def test_main_process_goes_first(zygote: Zygote) -> None:
    """No other rank enters the block before the main process has left it."""
    ended = zygote.run("agreeing:first_then_others", ranks=3)
    assert ended.codes == [0] * 3, ended.report()
    times = {
        (word, int(rank)): float(when)
        for each in ended.ranks
        for word, rank, when in re.findall(r"(\w+) (\d) ([\d.]+)", each.out)
    }
    assert times["leave", 0] <= min(times["enter", 1], times["enter", 2])


@pytest.mark.parametrize(("fail_on", "entered"), [(0, [0]), (1, [0, 1, 2])])
def test_main_process_first_survives_an_exception(zygote: Zygote, fail_on: int, entered: list[int]) -> None:
    """One rank's error leaves the block on that rank, OtherRanksFailed on all others; none waits."""
    ended = zygote.run("agreeing:first_then_others", ranks=3, fail_on=fail_on)
    assert ended.codes == [0] * 3, ended.report()
    for each in ended.ranks:
        expected = "own no data" if each.rank == fail_on else f"other {{{fail_on}: 'OSError: no data'}}"
        assert expected == each.out.splitlines()[-1]
    assert entered == [each.rank for each in ended.ranks if "enter" in each.out]


def test_only_a_rebuilt_group_may_resume(zygote: Zygote) -> None:
    """Communication resumes after the group was rebuilt, by the documented call, and not before."""
    ended = zygote.run("agreeing:rebuild", ranks=2)
    assert ended.codes == [0, 0], ended.report()
    for each in ended.ranks:
        note, same, new = each.out.splitlines()
        assert f"spmdguard: raised by rank {each.rank} in collective 'rebuild.<locals>.broken'" not in note
        assert note.startswith(f"spmdguard: raised by rank {each.rank} in collective 'broken' (number 1")
        assert (same, new) == ("same group refused OSError: lost", "new group resumed False")
