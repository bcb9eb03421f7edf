"""From where ranks stand to the cause: which ranks, which line, and what the others wait for."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spmdguard.watch.diagnosis import diagnose, stands_still
from spmdguard.watch.partings import find_parting
from spmdguard.watch.standing import GroupNumber, Standing

from .making import call, elsewhere, place, standings, waiting

TOGETHER = [call(1, "all_reduce", 10), call(2, "all_reduce", 10)]


def others(size: int, without: int) -> list[Standing]:
    calls = [*TOGETHER, call(3, "barrier", 20)]
    return [waiting(rank, size, calls) for rank in range(size) if rank != without]


def test_a_rank_that_began_another_collective_is_the_cause() -> None:
    """Of ranks that all wait, the few that began another operation at the same number are named."""
    odd = waiting(2, 4, [*TOGETHER, call(3, "broadcast", 15)])
    found = diagnose([*others(4, 2), odd], 4)
    assert (found.kind, found.suspects) == ("parted", (2,))
    assert "rank 2 began broadcast where ranks 0-1, 3 began barrier, number 3" in found.title
    assert found.parting is not None
    assert found.parting.before is not None
    assert found.parting.before.number == 2
    assert [(arm.ranks, arm.operation, arm.places) for arm in found.parting.arms] == [
        ((2,), "broadcast", (place(15),)),
        ((0, 1, 3), "barrier", (place(20),)),
    ]


def test_where_no_side_is_larger_all_ranks_are_named() -> None:
    """Of two ranks that part, neither can be called the cause alone."""
    found = diagnose([waiting(0, 2, [call(1, "barrier", 5)]), waiting(1, 2, [call(1, "all_reduce", 7)])], 2)
    assert (found.kind, found.suspects) == ("parted", (0, 1))


def test_an_early_mismatch_counts_before_a_later_wait() -> None:
    """Operations that differ but matched by chance are the parting, although ranks wait further on."""
    first = waiting(0, 2, [call(1, "barrier", 5), call(2, "all_reduce", 9)])
    second = waiting(1, 2, [call(1, "all_reduce", 6), call(2, "all_reduce", 9), call(3, "barrier", 11)])
    parting = find_parting({0: first, 1: second})
    assert parting is not None
    assert parting.number == 1


def test_the_same_collective_from_another_line_is_no_parting() -> None:
    """Ranks that reach the same operation through different lines are together."""
    first = waiting(0, 2, [call(1, "barrier", 5)])
    second = waiting(1, 2, [call(1, "barrier", 8)])
    found = diagnose([first, second], 2)
    assert (found.kind, found.parting) == ("together", None)


def test_a_rank_that_is_elsewhere_is_behind() -> None:
    """A rank outside communication is named with its line, and by how many collectives it is behind."""
    found = diagnose([*others(3, 1), elsewhere(1, 3, TOGETHER, 33)], 3)
    assert (found.kind, found.suspects) == ("elsewhere", (1,))
    assert found.clusters[0].behind == 1
    assert found.places()[0] == place(33)
    assert found.title == "rank 1 did not come: ranks 0, 2 wait in barrier"


@pytest.mark.parametrize("state", ["died", "stopped", "silent"])
def test_a_rank_that_cannot_come_is_the_cause(state: str) -> None:
    """A rank that died, is stopped, or holds the GIL is named before anything else."""
    lame = elsewhere(0, 4, TOGETHER, 33, state=state)
    found = diagnose([*others(4, 0), lame], 4)
    assert (found.kind, found.suspects) == (state, (0,))


def aborted(rank: int, line: int, operation: str = "all_reduce") -> Standing:
    dead = elsewhere(rank, 2, [], line, state="died", failure="SIGABRT")
    return replace(dead, operation=operation)


def test_a_rank_aborted_in_another_collective_has_parted() -> None:
    """SIGABRT in a collective while the others wait in another one, or at another line, is a parting."""
    (waits,) = others(2, 1)
    found = diagnose([waits, aborted(1, 33)], 2)
    assert (found.kind, found.suspects) == ("aborted", (1,))
    assert found.title == (
        "ranks parted: rank 1 was aborted in all_reduce, by a collective mismatch, while rank 0 waited in barrier"
    )
    assert found.parting is not None
    assert [(arm.ranks, arm.places) for arm in found.parting.arms] == [
        ((1,), (place(33),)),
        ((0,), waits.places),
    ]


@pytest.mark.parametrize(
    ("dead", "end"),
    [
        (replace(aborted(1, 33), failure="SIGKILL", operation=""), "ended by signal 9 (SIGKILL)"),
        (replace(aborted(1, 33), operation=""), "ended by signal 6 (SIGABRT)"),
        (
            replace(aborted(1, 33), failure="exit code 3", operation=""),
            "it ended with exit code 3, past Python",
        ),
        (replace(aborted(1, 33), failure="pthread_kill", operation=""), "ended by pthread_kill"),
        (replace(aborted(1, 33), failure="", operation=""), "killed, or os._exit"),
    ],
)
def test_how_a_process_ended_is_said(dead: Standing, end: str) -> None:
    """The signal or exit code stands in the title where it is known; a death outside collectives is no parting."""
    found = diagnose([*others(2, 1), dead], 2)
    assert found.kind == "died"
    assert found.title.startswith(f"rank 1 died without a word (process 101 on a): {end}")


def test_aborted_at_the_same_place_is_no_parting() -> None:
    """Where all stand in the same call at the same line nothing shows that they parted."""
    (waits,) = others(2, 1)
    dead = replace(aborted(1, 33), places=waits.places, operation=waits.operation)
    found = diagnose([waits, dead], 2)
    assert found.title.endswith("ended by signal 6 (SIGABRT) in barrier")


def test_a_rank_that_raised_first_is_the_only_cause() -> None:
    """Of several exceptions the oldest one that did not come out of communication is the cause."""
    early = elsewhere(3, 4, TOGETHER, 33, state="raised", failure="ValueError: NaN", since_s=2.0)
    late = elsewhere(1, 4, TOGETHER, 34, state="raised", failure="KeyError: 1", since_s=0.5)
    victim = replace(early, rank=2, failure="RuntimeError: timed out", victim=True, since_s=9.0)
    found = diagnose([early, late, victim, *others(4, 3)[:1]], 4)
    assert (found.kind, found.suspects) == ("raised", (3,))
    assert found.title == "rank 3 failed first: ValueError: NaN"


def test_a_rank_whose_wait_timed_out_is_a_victim() -> None:
    """A timeout in the collective for which others never came is no cause; the rank that did not come is."""
    victim = replace(others(2, 1)[0], state="raised", victim=True, failure="RuntimeError: Timed out")
    found = diagnose([victim, elsewhere(1, 2, TOGETHER, 33)], 2)
    assert (found.kind, found.suspects) == ("elsewhere", (1,))


def test_a_rank_that_ended_is_named() -> None:
    """A rank that ended well while others wait for it is the cause."""
    gone = elsewhere(1, 2, TOGETHER, 40, state="ended", exit_code=0)
    found = diagnose([*others(2, 1), gone], 2)
    assert (found.kind, found.suspects, found.title) == (
        "ended",
        (1,),
        "rank 1 ended while rank 0 waits in barrier",
    )


def test_ranks_of_which_nothing_was_heard_are_missing() -> None:
    """Ranks of the world that no standing tells of are named."""
    found = diagnose([each for each in others(8, 7) if each.rank < 4], 8)
    assert (found.kind, found.suspects) == ("missing", (4, 5, 6, 7))


def test_ranks_that_wait_for_each_other_in_two_groups_part() -> None:
    """Ranks that wait in collectives of different groups are named with both."""
    first = waiting(0, 2, [call(1, "barrier", 5)])
    second = waiting(1, 2, [call(1, "barrier", 7, group="1")])
    second = replace(second, groups=(GroupNumber("0", "", "0-1", 0), GroupNumber("1", "tp", "0-1", 1)))
    found = diagnose([first, second], 2)
    assert (found.kind, found.suspects) == ("parted", (0, 1))


def test_ranks_of_other_groups_do_not_count_as_behind() -> None:
    """Members of one group that part are found although other ranks have other groups."""
    ranks = [waiting(r, 4, [call(1, "barrier", 5)]) for r in range(4)]
    found = diagnose(ranks, 4)
    assert found.kind == "together"


def test_ranks_that_have_met_after_all_do_not_stand_still() -> None:
    """A wait that ended, or is short again, is nothing to report; one past the limit, or for a gone rank, is."""
    late = elsewhere(1, 2, TOGETHER, 33)
    waits = others(2, 1)[0]
    assert not stands_still([replace(waits, state="running"), late], 2, 3.0)
    assert not stands_still([replace(waits, since_s=0.2), late], 2, 3.0)
    assert stands_still([waits, late], 2, 3.0)
    assert stands_still([replace(waits, since_s=0.2), replace(late, state="died")], 2, 3.0)
    assert stands_still([replace(waits, since_s=0.2)], 2, 3.0)
    assert not stands_still([replace(late, state="ended"), replace(late, rank=0)], 2, 3.0)


@settings(max_examples=60, deadline=None)
@given(st.lists(standings, max_size=12), st.integers(0, 12))
def test_any_standings_have_a_diagnosis(found: list[Standing], world_size: int) -> None:
    """Whatever ranks say, there is a diagnosis, every rank stands somewhere, and suspects are ranks."""
    diagnosis = diagnose(found, world_size)
    ranks = {each.rank for each in found} | set(range(world_size))
    assert sorted(rank for cluster in diagnosis.clusters for rank in cluster.ranks) == sorted(ranks)
    assert set(diagnosis.suspects) <= ranks
    assert diagnosis.title
