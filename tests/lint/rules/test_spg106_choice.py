"""SPG106: one call for which ranks name groups that have members in common."""

from __future__ import annotations

from tests.lint.rules.marked import agree


def test_groups_chosen_by_the_rank() -> None:
    """A second group of the same ranks beside the default one, a group of some beside that of all, tables, fields."""
    assert agree(
        """
        import torch.distributed as dist

        def twice():
            dup = dist.new_group()
            where = dup if dist.get_rank() == 0 else dist.group.WORLD
            work = dist.barrier(group=where, async_op=True)  # SPG106
            work.wait()

        def in_arms(x):
            dup = dist.new_group(list(range(dist.get_world_size())))
            if dist.get_rank() % 2:
                group = dup
            else:
                group = None
            dist.broadcast(x, src=0, group=group)  # SPG106

        class Pair:
            def __init__(self):
                self.pair = dist.new_group([0, 1])
                self.group = self.pair if dist.get_rank() < 2 else dist.group.WORLD

            def total(self, x):
                dist.all_reduce(x, group=self.group)  # SPG106

        def from_a_table(x):
            low, high = dist.new_group([0, 1]), dist.new_group([2, 3])
            dist.all_reduce(x, group=[low, high][dist.get_rank() % 2])  # SPG106
        """,
        "SPG106",
    )


def test_groups_that_all_members_name() -> None:
    """Groups apart from one another, groups chosen alike everywhere, and who is no member stays away."""
    assert agree(
        """
        import torch.distributed as dist

        def apart(x):
            low, high = dist.new_group([0, 1]), dist.new_group([2, 3])
            dist.all_reduce(x, group=low if dist.get_rank() < 2 else high)
            dist.all_reduce(x, group={0: low, 1: high}[dist.get_rank() // 2])
            dist.all_reduce(x, group=[low, high][dist.get_rank() // 2])

        def alike(x, fast):
            dup = dist.new_group(backend="gloo")
            dist.all_reduce(x, group=dup if fast else None)
            dist.all_reduce(x, group=dup if dist.get_world_size() > 8 else None)

        def members_only(x):
            pair = dist.new_group([0, 1])
            mine = pair if dist.get_rank() < 2 else None
            if mine is not None:
                dist.all_reduce(x, group=mine)
            if dist.get_rank() < 2:
                dist.all_reduce(x, group=mine)

        def others_left(x):
            pair = dist.new_group([0, 1])
            mine = pair if dist.get_rank() < 2 else None
            if mine is None:
                return
            dist.all_reduce(x, group=mine)

        def unknown(x, make):
            dist.all_reduce(x, group=make() if dist.get_rank() < 2 else None)
        """,
        "SPG106",
    )
