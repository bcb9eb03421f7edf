"""Ranks of one host agree a step late through shared memory, and keep every promise that gloo kept."""

from __future__ import annotations

import re

import pytest

from .processes import Zygote

pytestmark = pytest.mark.processes


def test_a_step_begins_no_collective(zygote: Zygote) -> None:
    """After the first agreement none starts an operation of the group, and ranks stop as always."""
    ended = zygote.run("same_host:steps_without_gloo", ranks=4)
    assert ended.codes == [0] * 4, ended.report()
    for each in ended.ranks:
        number, verdicts = each.out.splitlines()
        assert number == "0"
        assert verdicts.startswith("[False, False, True] rank 0: should_stop=True at ")


@pytest.mark.parametrize("refuse_on", [0, 2])
def test_all_ranks_use_gloo_where_one_cannot_share(zygote: Zygote, refuse_on: int) -> None:
    """A rank without access to the memory is heard by all: one all_reduce a step, and the same verdicts."""
    ended = zygote.run("same_host:steps_without_gloo", ranks=3, refuse_on=refuse_on)
    assert ended.codes == [0] * 3, ended.report()
    for each in ended.ranks:
        number, verdicts = each.out.splitlines()
        assert number == "8"
        assert verdicts.startswith("[False, False, True] rank 0: should_stop=True at ")


def test_no_turn_is_taken_for_another(zygote: Zygote) -> None:
    """At random paces every rank gets the maximum of this turn's values, in every turn."""
    ended = zygote.run("same_host:many_turns", ranks=4, num_turns=3000, timeout_s=60.0)
    assert ended.codes == [0] * 4, ended.report()
    assert [each.out for each in ended.ranks] == ["wrong 0\n"] * 4


@pytest.mark.parametrize("how", ["killed", "leaves"])
def test_a_rank_that_is_gone_is_named_at_once(zygote: Zygote, how: str) -> None:
    """A rank that was killed, or destroyed its group, before it came is told long before the timeout of 300 s."""
    ended = zygote.run("same_host:one_does_not_come", ranks=3, how=how)
    assert [ended[0].code, ended[2].code] == [3, 3], ended.report()
    for rank in (0, 2):
        saw = re.fullmatch(r"step 5 \[1\] (rank 1 ended or destroyed the group .*)\n", ended[rank].out)
        assert saw or "[0, 1]" in ended[rank].out or "[1, 2]" in ended[rank].out, ended.report()


def test_a_rank_that_never_comes_is_named_after_the_timeout(zygote: Zygote) -> None:
    """A rank that lives and does not come ends the wait of the others at the group's timeout."""
    ended = zygote.run("same_host:one_does_not_come", ranks=2, how="stays", group_timeout_s=6.0)
    assert ended[0].code == 3, ended.report()
    assert re.fullmatch(r"step 5 \[1\] waited \d+\.\d s for rank 1\n", ended[0].out), ended.report()


def test_groups_agree_for_themselves(zygote: Zygote) -> None:
    """Two halves of the ranks stop in steps of their own, and name their own."""
    ended = zygote.run("same_host:halves", ranks=4)
    assert ended.codes == [0] * 4, ended.report()
    assert [each.out for each in ended.ranks] == ["3 (1,)\n"] * 2 + ["6 (2,)\n"] * 2


def test_a_new_group_begins_anew(zygote: Zygote) -> None:
    """After a group was rebuilt ranks agree again; a forked child does not leave in its parent's name."""
    ended = zygote.run("same_host:again_after_a_new_group", ranks=2)
    assert ended.codes == [0, 0], ended.report()
    assert [each.out for each in ended.ranks] == ["[False, True]\n" * 2] * 2, ended.report()


def test_a_group_that_ends_frees_what_it_held(zygote: Zygote) -> None:
    """Descriptors do not pile up where groups come and go."""
    ended = zygote.run("same_host:groups_come_and_go", ranks=2, num_groups=12)
    assert ended.codes == [0, 0], ended.report()
    assert [each.out for each in ended.ranks] == ["more True\n"] * 2, ended.report()
