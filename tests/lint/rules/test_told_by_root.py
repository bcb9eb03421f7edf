"""The root keeps its own value and the others take what it told them."""

from __future__ import annotations

from tests.lint.rules.marked import agree

RULES = ("SPG101", "SPG102", "SPG301", "SPG401", "SPG402")


def test_the_root_keeps_its_own_and_the_others_take_it_over() -> None:
    """A verdict of rank 0 sent in a list of one item, and the item taken over elsewhere only."""
    assert agree(
        """
        import torch.distributed as dist

        def follow(stopper, x):
            rank, stop = dist.get_rank(), False
            while True:
                dist.all_reduce(x)
                if rank == 0:
                    stop = stopper(x)
                verdict = [stop if rank == 0 else None]
                dist.broadcast_object_list(verdict, 0)
                if rank != 0:
                    stop = verdict[0]
                if stop:
                    break

        def the_other_way_round(stopper, x):
            found = stopper(x)
            cell = [found]
            dist.broadcast_object_list(cell, src=1)
            stop = found if dist.get_rank() == 1 else cell[0]
            if stop:
                return
            dist.all_reduce(x)
        """,
        *RULES,
    )


def test_who_keeps_another_value_goes_its_own_way() -> None:
    """Taken over by one rank only, changed on the root after the broadcast, another root."""
    assert agree(
        """
        import random
        import torch.distributed as dist

        def by_one_rank(stopper, x):
            stop = random.random() < 0.5
            cell = [stop]
            dist.broadcast_object_list(cell, src=0)
            if dist.get_rank() == 1:
                stop = cell[0]
            if stop:
                return  # SPG102
            dist.all_reduce(x)

        def changed_after(stopper, x):
            stop = random.random() < 0.5
            cell = [stop]
            dist.broadcast_object_list(cell, src=0)
            stop = random.random() < 0.1
            if dist.get_rank() != 0:
                stop = cell[0]
            if stop:
                return  # SPG102
            dist.all_reduce(x)

        def of_another_root(stopper, x):
            stop = random.random() < 0.5
            cell = [stop]
            dist.broadcast_object_list(cell, src=1)
            if dist.get_rank() != 0:
                stop = cell[0]
            if stop:
                return  # SPG102
            dist.all_reduce(x)
        """,
        *RULES,
    )
