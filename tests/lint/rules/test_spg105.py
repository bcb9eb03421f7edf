"""SPG105: collectives that an expression evaluates on some ranks only."""

from __future__ import annotations

from tests.lint.rules.marked import agree

CODES = ("SPG101", "SPG104", "SPG105", "SPG102")


def test_parts_of_expressions() -> None:
    """Behind `and` and `or`, in a conditional expression, also through a call."""
    assert agree(
        """
        import torch.distributed as dist

        def agree(flag):
            dist.all_reduce(flag)
            return bool(flag)

        def behind_and(flag):
            return dist.get_rank() == 0 and agree(flag)  # SPG105

        def behind_or(flag):
            if dist.get_rank() > 0 or agree(flag):  # SPG105
                print("done")

        def conditional(x):
            return dist.all_reduce(x) if dist.get_rank() == 0 else None  # SPG105
        """,
        *CODES,
    )


def test_evaluated_everywhere_is_silent() -> None:
    """The collective first, or a test that is the same on all ranks in front of it."""
    assert agree(
        """
        import torch.distributed as dist

        def agree(flag):
            dist.all_reduce(flag)
            return bool(flag)

        def first(flag):
            return agree(flag) and dist.get_rank() == 0

        def uniform(flag, enabled):
            return enabled and agree(flag)

        def either(x):
            return dist.all_reduce(x) if dist.get_rank() == 0 else dist.all_reduce(x)
        """,
        *CODES,
    )


def test_known_miss_any_over_a_generator() -> None:
    """`any` stops at the first true item, which may come at another place on each rank."""
    assert agree(
        """
        import torch.distributed as dist

        def agree(flag):
            dist.all_reduce(flag)
            return bool(flag)

        def some(flags):
            return any(agree(flag) for flag in flags)
        """,
        *CODES,
    )
