"""Context managers of the project whose yields stand in several arms, and sizes behind the first dimension."""

from __future__ import annotations

from tests.lint.rules.marked import agree

RULES = ("SPG101", "SPG102", "SPG103", "SPG104")


def test_each_arm_that_yields_runs_the_block() -> None:
    """A profiler on one rank: the block runs on all; what stands beside a yield runs on its ranks only."""
    assert agree(
        """
        import contextlib
        import torch.distributed as dist
        from torch.profiler import profile

        @contextlib.contextmanager
        def profiled(enabled):
            if not enabled:
                yield None
                return
            with profile() as prof:
                yield prof

        @contextlib.contextmanager
        def with_a_barrier(enabled):
            if enabled:
                dist.barrier()  # SPG103
                yield None
            else:
                yield None

        @contextlib.contextmanager
        def profiled_or_not(enabled):
            if enabled:
                with profile() as prof:
                    yield prof
            else:
                yield None

        def train(x):
            with profiled(dist.get_rank() == 0):
                for step in range(3):
                    dist.all_reduce(x)
            dist.barrier()

        def meets_where_it_profiles(x):
            with profiled_or_not(dist.get_rank() == 0) as prof:
                if prof is not None:
                    dist.all_reduce(x)  # SPG101
            dist.barrier()

        def unequal(x):
            with with_a_barrier(dist.get_rank() == 0):
                dist.all_reduce(x)
        """,
        *RULES,
    )


def test_rows_differ_and_widths_do_not() -> None:
    """A share of the rows: its number of rows differs, its number of columns does not."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        def share(rank, world, n=200):
            return torch.randn(n // world + (1 if rank < n % world else 0), 32)

        def by_width(x):
            rows = share(dist.get_rank(), dist.get_world_size())
            if rows.size(1) > 3 or rows.shape[-1] > 3:
                dist.all_reduce(x)
            num_rows, num_columns = rows.shape
            if num_columns > 3:
                dist.all_reduce(x)

        def by_rows(x):
            rows = share(dist.get_rank(), dist.get_world_size())
            if rows.size(0) > 3:
                dist.all_reduce(x)  # SPG101
            num_rows, num_columns = rows.shape
            if num_rows > 3:
                dist.all_reduce(x)  # SPG101
        """,
        *RULES,
    )
