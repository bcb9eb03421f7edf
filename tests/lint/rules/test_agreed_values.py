"""Values that ranks have compared with one another."""

from __future__ import annotations

from tests.lint.rules.marked import agree

START = """
        import torch, os, torch.distributed as dist


        def load(path):
            step = 0
            try:
                step = torch.load(path)["step"]
            except OSError:
                print("none")
            return step
"""
PATHS = ("SPG401", "SPG101", "SPG205")


def test_what_was_found_equal() -> None:
    """The smallest and the largest, a set of one, all or none in a list, and a field of an object."""
    assert agree(
        START
        + """
        def objs(xs):
            step = load(f"s{dist.get_rank()}.pt")
            got = [None] * dist.get_world_size()
            dist.all_gather_object(got, step)
            if len(set(got)) != 1:
                raise RuntimeError
            for _ in range(step, 1000):
                dist.all_reduce(xs)

        def minmax(xs):
            step = load(f"s{dist.get_rank()}.pt")
            lo = torch.tensor(step); hi = torch.tensor(step)
            dist.all_reduce(lo, op=dist.ReduceOp.MIN)
            dist.all_reduce(hi, op=dist.ReduceOp.MAX)
            if lo.item() != hi.item():
                step = 0
            for _ in range(step, 1000):
                dist.all_reduce(xs)

        def assertion(xs):
            step = load(f"s{dist.get_rank()}.pt")
            got = [None] * dist.get_world_size()
            dist.all_gather_object(got, step)
            assert all(g == got[0] for g in got)
            for _ in range(step, 1000):
                dist.all_reduce(xs)

        def tens(xs):
            step = load(f"s{dist.get_rank()}.pt")
            t = torch.tensor([step])
            got = [torch.empty_like(t) for _ in range(dist.get_world_size())]
            dist.all_gather(got, t)
            steps = [int(g.item()) for g in got]
            if min(steps) != max(steps):
                raise RuntimeError
            for _ in range(step, 1000):
                dist.all_reduce(xs)

        def with_a_negative(xs):
            step, seed = load(f"s{dist.get_rank()}.pt"), 0
            seen = torch.tensor([step, -step])
            dist.all_reduce(seen, op=dist.ReduceOp.MIN)
            low, high = int(seen[0]), -int(seen[1])
            if low != high or low < 0:
                return
            for _ in range(step, 1000):
                dist.all_reduce(xs)

        class Progress:
            def __init__(self):
                self.step = load(f"s{dist.get_rank()}.pt")

            def agree(self):
                everyone = [None] * dist.get_world_size()
                dist.all_gather_object(everyone, self.step)
                if any(one != everyone[0] for one in everyone):
                    self.step = 0

        def by_attribute(xs):
            progress = Progress()
            progress.agree()
            for _ in range(progress.step, 1000):
                dist.all_reduce(xs)
        """,
        *PATHS,
    )


def test_what_was_not() -> None:
    """Ranks that only warn, the arm in which values differ, one number alone, members of one group."""
    assert agree(
        START
        + """
        def only_warns(xs):
            step = load(f"s{dist.get_rank()}.pt")
            lo = torch.tensor(step); hi = torch.tensor(step)
            dist.all_reduce(lo, op=dist.ReduceOp.MIN)
            dist.all_reduce(hi, op=dist.ReduceOp.MAX)
            if lo.item() != hi.item():
                print("differ")
            for _ in range(step, 1000):
                dist.all_reduce(xs)  # SPG401

        def wrong_arm(xs):
            step = load(f"s{dist.get_rank()}.pt")
            got = [None] * dist.get_world_size()
            dist.all_gather_object(got, step)
            if len(set(got)) == 1:
                return
            for _ in range(step, 1000):
                dist.all_reduce(xs)  # SPG401

        def compared_with_number(xs):
            step = load(f"s{dist.get_rank()}.pt")
            lo = torch.tensor(step)
            dist.all_reduce(lo, op=dist.ReduceOp.MIN)
            if lo.item() != 0:
                for _ in range(step, 1000):
                    dist.all_reduce(xs)  # SPG401
            if lo.item() == 0:
                for _ in range(step, 1000):
                    dist.all_reduce(xs)  # SPG401

        def within_a_group(xs, group):
            step = load(f"s{dist.get_rank()}.pt")
            low = torch.tensor([step, -step])
            dist.all_reduce(low, op=dist.ReduceOp.MIN, group=group)
            if low[0] != -low[1]:
                return
            for _ in range(step, 1000):
                dist.all_reduce(xs)  # SPG401
        """,
        *PATHS,
    )


def test_two_loaders_of_one_call() -> None:
    """What a call makes of rank and world size is a share as long as that of the others, and so are its parts."""
    assert agree(
        """
        import torch.distributed as dist

        def unpacked(make, xs):
            loader, tests = make(dist.get_rank(), dist.get_world_size())
            for x in loader:
                dist.all_reduce(x)

        def by_index(make, xs):
            loader = make(dist.get_rank(), dist.get_world_size())[0]
            for x in loader:
                dist.all_reduce(x)

        def by_the_rank(make, xs):
            shares = make(dist.get_world_size())
            for x in shares[dist.get_rank()]:
                dist.all_reduce(x)  # SPG401
        """,
        *PATHS,
    )
