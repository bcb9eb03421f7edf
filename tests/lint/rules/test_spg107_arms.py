"""SPG107 on calls that meet from the two arms of a branch, from tables of functions, and on one value by two names."""

from __future__ import annotations

from tests.lint.rules.marked import agree


def test_arms_with_arguments_of_their_own() -> None:
    """Root, operator, size, dtype and length are compared between the arms, call by call, also behind calls."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        def roots(x):
            if dist.get_rank() == 0:
                dist.broadcast(x, src=0)
            else:
                dist.broadcast(x, src=1)  # SPG107

        def operators(x):
            if dist.get_rank() % 2:
                dist.all_reduce(x)
            else:
                dist.all_reduce(x, op=dist.ReduceOp.MAX)  # SPG107

        def second(x, y):
            if dist.get_rank() == 0:
                dist.barrier()
                dist.reduce(x, dst=0)
            else:
                dist.barrier()
                dist.reduce(y, dst=dist.get_world_size() - 1)  # SPG107

        def sizes():
            if dist.get_rank() == 0:
                dist.broadcast(torch.zeros(4), src=0)
            else:
                dist.broadcast(torch.zeros(8), src=0)  # SPG107

        def dtypes():
            if dist.get_rank() == 0:
                dist.broadcast(torch.zeros(4).double(), src=0)
            else:
                dist.broadcast(torch.zeros(4), src=0)  # SPG107

        def lengths():
            if dist.get_rank() == 0:
                dist.broadcast_object_list(["a", "b"])
            else:
                dist.broadcast_object_list([None])  # SPG107

        class Sharing:
            def give(self, x):
                dist.broadcast(x, src=0)

            def take(self, x):
                dist.broadcast(x, src=1)

            def share(self, x):
                if dist.get_rank() == 0:
                    self.give(x)
                else:
                    self.take(x)  # SPG107

        def by_batch(x, loss):
            dist.barrier()
            if torch.randn(1).item() > 0:
                dist.all_reduce(x, op=dist.ReduceOp.MAX)
            else:
                dist.all_reduce(x, op=dist.ReduceOp.MIN)  # SPG107
        """,
        "SPG107",
    )


def test_functions_from_a_table() -> None:
    """A table of functions that the rank chooses from gives each rank a reduction of its own."""
    assert agree(
        """
        import torch.distributed as dist

        BY_KIND = {
            0: lambda t: dist.all_reduce(t, op=dist.ReduceOp.SUM),
            1: lambda t: dist.all_reduce(t, op=dist.ReduceOp.MAX),
        }

        def total(t):
            dist.all_reduce(t)

        def peak(t):
            dist.all_reduce(t, dist.ReduceOp.MAX)

        def by_rank(values):
            for column, value in enumerate(values):
                BY_KIND[(dist.get_rank() + column) % 2](value)  # SPG107

        def by_column(values):
            for column, value in enumerate(values):
                BY_KIND[column % 2](value)

        def chosen(x):
            reduce = total if dist.get_rank() == 0 else peak
            reduce(x)  # SPG107

        def listed(x):
            [total, peak][dist.get_rank() % 2](x)  # SPG107
        """,
        "SPG107",
    )


def test_arms_that_agree() -> None:
    """The same root by another name, a default that is written out, and arms in which something else decides."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        def named(x, y, root):
            rank, last = dist.get_rank(), dist.get_world_size() - 1
            if rank == 0:
                dist.broadcast(x, src=rank)
            else:
                dist.broadcast(y, src=0)
            if rank == root:
                dist.broadcast(x, src=rank)
            else:
                dist.broadcast(y, src=root)
            if rank != last:
                dist.broadcast(y, src=last)
            else:
                dist.broadcast(x, src=rank)
            source = rank if rank == root else root
            dist.broadcast(x, src=source)

        def defaults(x):
            if dist.get_rank() == 0:
                dist.all_reduce(x)
                dist.broadcast_object_list([1])
            else:
                dist.all_reduce(x, op=dist.ReduceOp.SUM)
                dist.broadcast_object_list([None], src=0)

        def shapes(x, meta):
            if dist.get_rank() == 0:
                dist.broadcast(x, src=0)
            else:
                dist.broadcast(torch.empty(meta.shape), src=0)

        def shared(x, average):
            if average:
                dist.all_reduce(x, op=dist.ReduceOp.AVG)
            else:
                dist.all_reduce(x, op=dist.ReduceOp.SUM)

        def in_groups(x, even, odd):
            if dist.get_rank() % 2:
                dist.broadcast(x, src=1, group=odd)
            else:
                dist.broadcast(x, src=0, group=even)
        """,
        "SPG107",
    )
