"""Recursion whose depth differs between ranks, and collectives that functions call under names of their own."""

from __future__ import annotations

import pytest

from tests.lint.rules.marked import agree

CODES = ("SPG101", "SPG102", "SPG104")


@pytest.mark.parametrize(
    ("importing", "call"),
    [
        ("import torch.distributed as td", "td.reduce(torch.zeros(1), dst=0)"),
        ("from torch.distributed import barrier as meet", "meet()"),
        ("from torch import distributed", "distributed.barrier()"),
    ],
)
def test_depth_by_rank(importing: str, call: str) -> None:
    """A recursion that each rank ends at another depth is reported, whatever name the collective has."""
    assert agree(
        f"""
        import torch
        {importing}
        from torch.distributed import get_rank

        def descend(depth):
            if depth <= 0:
                return  # SPG102
            {call}
            descend(depth - 1)

        def main():
            descend(get_rank() + 1)

        main()
        """,
        *CODES,
    )


def test_long_functions_are_followed_to_renamed_collectives() -> None:
    """A long function is followed when it calls a collective through an alias that no text search knows."""
    filler = "\n".join(f"            count += {number}" for number in range(20))
    assert agree(
        f"""
        from torch.distributed import get_rank
        from torch.distributed import barrier as meet

        def long(count):
{filler}
            meet()
            return count

        def main(count):
            if get_rank() == 0:
                long(count)  # SPG104
        """,
        *CODES,
    )


def test_ranks_that_start_from_other_depths_do_not_meet_by_chance() -> None:
    """Two ranks of a small world meet equally often; the third of a larger one does not."""
    assert agree(
        """
        from torch.distributed import barrier, get_rank

        def descend(depth):
            if depth <= 0:
                return  # SPG102
            barrier()
            descend(depth - 1)

        def main():
            descend(get_rank() * 2)
            if get_rank() == 0:
                descend(2)  # SPG104
        """,
        *CODES,
    )


@pytest.mark.parametrize("depth", ["get_rank() + 2", "3 - min(get_rank(), 2)", "5 if get_rank() else 3"])
def test_every_rank_goes_deeper_than_once(depth: str) -> None:
    """Where no rank ends at the first level, the level behind tells that they end at different ones."""
    assert agree(
        f"""
        import torch.distributed as dist
        from torch.distributed import get_rank

        def refine(grid, depth):
            dist.all_reduce(grid)
            if depth == 0:
                return grid  # SPG102
            return refine(grid / 2, depth - 1)

        def main(grid):
            return refine(grid, {depth})
        """,
        *CODES,
    )


def test_recursion_as_deep_on_every_rank() -> None:
    """A depth that all ranks share, the rank as an argument handed on, and a level without collectives are right."""
    assert agree(
        """
        import torch.distributed as dist
        from torch.distributed import get_rank, get_world_size

        def refine(grid, depth, rank):
            dist.all_reduce(grid)
            if rank == 0:
                print(depth)
            if depth == 0:
                return grid
            return refine(grid / 2, depth - 1, rank)

        def first(depth, rank):
            if rank != 0:
                dist.barrier()
            print(depth)
            if rank == 0:
                dist.barrier()
            if depth > 0:
                first(depth - 1, rank)

        def local(grid, depth):
            return grid if depth == 0 else local(grid / 2, depth - 1)

        def main(grid):
            refine(grid, 3 - min(get_world_size(), 2), get_rank())
            first(4, get_rank())
            dist.all_reduce(local(grid, get_rank() + 2))
        """,
        *CODES,
    )
