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
