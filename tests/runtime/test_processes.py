"""The helper that starts ranks, checked before anything is claimed with it."""

from __future__ import annotations

from .processes import Zygote


def test_ranks_are_real_and_their_exits_are_seen(zygote: Zygote) -> None:
    """Ranks talk over gloo; exit codes, uncaught exceptions and output come back per rank."""
    ended = zygote.run("smoke:reduce_and_exit", ranks=2, code=7)
    assert ended.codes == [7, 1], ended.report()
    assert [each.out for each in ended.ranks] == ["total 2\n", "total 2\n"]
    assert "OSError: rank 1" in ended[1].err
    assert ended.num_left_over == 0


def test_hung_ranks_are_killed_and_named(zygote: Zygote) -> None:
    """A rank that does not end is killed at the timeout and told apart from one that ended."""
    ended = zygote.run("smoke:reduce_and_exit", ranks=2, timeout_s=4.0, hang_on=0)
    assert ended.hung == [0], ended.report()


def test_left_over_children_are_found(zygote: Zygote) -> None:
    """A child process that outlives its rank is counted and ended."""
    ended = zygote.run("smoke:reduce_and_exit", ranks=1, leave_child=True)
    assert (ended.num_left_over, ended.codes) == (1, [0]), ended.report()
