"""SPG610: groups that are made anew in each round."""

from __future__ import annotations

from tests.lint.rules.marked import agree


def test_groups_made_in_each_round() -> None:
    """In a for loop, in a while loop, and in a helper that the loop calls."""
    assert agree(
        """
        import torch.distributed as dist

        def train(steps, x):
            for _ in range(steps):
                pair = dist.new_group([0, 1])  # SPG610
                dist.all_reduce(x, group=pair)

        def until(x, goal):
            step = 0
            while step < goal:
                everyone = dist.new_group(list(range(dist.get_world_size())))  # SPG610
                dist.broadcast(x, src=0, group=everyone)
                step += 1

        def one_step(batch, ranks):
            group = dist.new_group(ranks)  # SPG610
            dist.all_reduce(batch, group=group)

        def hoarded(steps, x, groups):
            for _ in range(steps):
                pair = dist.new_group([0, 1])  # SPG610
                groups.append(pair)
                dist.all_reduce(x, group=pair)

        def not_kept(steps):
            for _ in range(steps):
                pair = dist.new_group([0, 1])  # SPG610
                dist.barrier(group=pair)

        def loop(batches):
            for batch in batches:
                one_step(batch, [0, 1])
        """,
        "SPG610",
    )


def test_groups_made_once() -> None:
    """Before the loop, another group in each round, destroyed in the round, kept in a table, and for later use."""
    assert agree(
        """
        import torch.distributed as dist

        def before(steps, x):
            pair = dist.new_group([0, 1])
            for _ in range(steps):
                dist.all_reduce(x, group=pair)

        def partition(x, size):
            for start in range(0, dist.get_world_size(), size):
                group = dist.new_group(list(range(start, start + size)))
                dist.all_reduce(x, group=group)

        def listed(x, members):
            for ranks in members:
                group = dist.new_group(ranks)
                dist.barrier(group=group)

        def destroyed(steps, x):
            for _ in range(steps):
                pair = dist.new_group([0, 1])
                dist.all_reduce(x, group=pair)
                dist.destroy_process_group(pair)

        def remembered(steps, x, table):
            for _ in range(steps):
                if "pair" not in table:
                    table["pair"] = dist.new_group([0, 1])
                dist.all_reduce(x, group=table["pair"])

        def tried_out(count, ranks):
            made = []
            for _ in range(count):
                group = dist.new_group(ranks)
                dist.barrier(group=group)
                if dist.get_rank() in ranks:
                    made.append(group)
            return made

        def several(count):
            return [dist.new_group([0, 1]) for _ in range(count)]
        """,
        "SPG610",
    )
