"""SPG107: roots and operators that differ between ranks."""

from __future__ import annotations

from tests.lint.rules.marked import agree

ROOTS = ("SPG101", "SPG103", "SPG107")


def test_root_or_operator_by_rank() -> None:
    """A rank that names itself, a root computed from the rank, an operator chosen by it."""
    assert agree(
        """
        import random
        import torch.distributed as dist

        def itself(x):
            dist.broadcast(x, src=dist.get_rank())  # SPG107

        def computed(x):
            rank = dist.get_rank()
            dist.reduce(x, dst=rank // 2)  # SPG107

        def chosen(x):
            root = 0 if dist.get_rank() < 2 else 2
            dist.gather(x, dst=root)  # SPG107

        def operator(x):
            op = dist.ReduceOp.MAX if dist.get_rank() else dist.ReduceOp.MIN
            dist.all_reduce(x, op=op)  # SPG107

        def drawn(x):
            dist.broadcast(x, src=random.randrange(dist.get_world_size()))  # SPG107

        def helper(x, root):
            dist.reduce(x, dst=root)  # SPG107

        def caller(x):
            helper(x, dist.get_rank())
        """,
        *ROOTS,
    )


def test_shared_roots_are_silent() -> None:
    """Constants, loop counters, agreed winners, roots of a sub-group, and values only one rank uses."""
    assert agree(
        """
        import torch.distributed as dist

        def constant(x):
            dist.broadcast(x, 0)

        def in_turn(xs):
            for owner in range(dist.get_world_size()):
                dist.broadcast(xs[owner], src=owner)

        def winner(x, score):
            scores = [None] * dist.get_world_size()
            dist.all_gather_object(scores, score)
            dist.broadcast(x, src=scores.index(max(scores)))

        def list_of_one(x):
            dist.gather(x, [x] if dist.get_rank() == 0 else None, dst=0)

        def within(x, group):
            leader = dist.get_global_rank(group, 0)
            dist.broadcast(x, src=leader, group=group)

        def by_role(x, sends, peer):
            if sends:
                dist.broadcast(x, src=dist.get_rank())
            else:
                dist.broadcast(x, src=peer)

        def guarded(x):
            rank = dist.get_rank()
            if rank == 3:
                dist.broadcast(x, src=rank)  # SPG101
        """,
        *ROOTS,
    )


def test_known_miss_shapes() -> None:
    """Tensors whose size depends on the rank are not compared."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        def sizes():
            dist.all_reduce(torch.zeros(dist.get_rank() + 1))
        """,
        *ROOTS,
    )
