"""Loops over ``takewhile(test, items)`` and ``iter(function, last)``: the test ends them, on each rank for itself."""

from __future__ import annotations

from tests.lint.rules.marked import agree

CODES = ("SPG101", "SPG102", "SPG301", "SPG303", "SPG305", "SPG401", "SPG402")


def test_a_test_on_this_ranks_own_state() -> None:
    """A function, a lambda, an object that is called, one behind ``enumerate``; what they ask for is the rank's own."""
    assert agree(
        """
        import itertools
        from itertools import takewhile
        import torch
        import torch.distributed as dist

        class Gap:
            def __init__(self, floor):
                self.floor, self.size = floor, 1e9

            def __call__(self, step):
                return self.size > self.floor

        def by_object(point, target, limit):
            gap = Gap(0.1)
            for step in itertools.takewhile(gap, range(limit)):  # SPG102
                grad = point - target
                gap.size = grad.norm().item()
                dist.all_reduce(grad)
                point = point - grad

        def by_lambda(x, n):
            rank = dist.get_rank()
            for i, step in enumerate(takewhile(lambda step: step < rank + 2, range(n))):  # SPG102
                dist.all_reduce(x)

        def by_function(loader):
            done = False

            def going(batch):
                return not done

            for batch in takewhile(going, loader):  # SPG102
                done = batch.sum().item() > 3
                dist.all_reduce(batch)

        def by_sentinel(x):
            def more():
                return torch.rand(1).item()

            for value in iter(more, 0.0):  # SPG303
                dist.all_reduce(x)
        """,
        *CODES,
    )


def test_a_test_that_all_ranks_answer_alike() -> None:
    """A bound on the step, a norm of what was reduced, a function of which nothing is known, local loops."""
    assert agree(
        """
        import itertools
        import torch
        import torch.distributed as dist

        class Gap:
            def __init__(self, floor):
                self.floor, self.size = floor, 1e9

            def __call__(self, step):
                return self.size > self.floor

        def reduced(point, target, limit):
            gap = Gap(0.1)
            for step in itertools.takewhile(gap, range(limit)):
                grad = point - target
                dist.all_reduce(grad)
                gap.size = grad.norm().item()
                point = point - grad

        def bounded(x, n):
            for step in itertools.takewhile(lambda step: step < n, itertools.count()):
                dist.all_reduce(x)

        def unknown(x, test, items, take):
            for item in itertools.takewhile(test, items):
                dist.all_reduce(x)
            for item in iter(take, None):
                dist.all_reduce(x)

        def local(x, n):
            rank = dist.get_rank()
            for step in itertools.takewhile(lambda step: step < rank, range(n)):
                print(step)
            dist.all_reduce(x)
        """,
        *CODES,
    )


def test_numbers_read_before_the_reduction() -> None:
    """A name, or a field, that is tested in the next round; a number that is only printed is no reason."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        class Solver:
            def __init__(self):
                self.error = 1e9

            def run(self, point, target):
                while self.error > 0.1:
                    grad = point - target
                    self.error = grad.norm().item()
                    dist.all_reduce(grad)  # SPG402
                    point = point - grad

        def by_name(point, target):
            error = 1e9
            while error > 0.1:
                grad = point - target
                error = float(grad.abs().max())
                dist.all_reduce(grad)  # SPG402
                point = point - grad

        def printed(losses):
            for loss in losses:
                own = loss.item()
                dist.all_reduce(loss)
                print(own, loss.item())
                if loss.item() > 3:
                    break
        """,
        *CODES,
    )


def test_slices_of_generators_that_communicate() -> None:
    """Who draws more items than the others calls more collectives; items left out are drawn all the same."""
    assert agree(
        """
        import itertools
        from itertools import islice
        import torch.distributed as dist

        def rounds(x):
            while True:
                dist.all_reduce(x)
                yield x.item()

        def lines(path):
            with open(path) as file:
                yield from file

        def more(x):
            me = dist.get_rank()
            for value in islice(rounds(x), 2 + me):  # SPG102
                print(value)

        def listed(x):
            return list(itertools.islice(rounds(x), 0, dist.get_rank()))  # SPG102

        def of_expression(xs):
            means = (dist.all_reduce(x) for x in xs)
            return list(islice(means, dist.get_rank()))  # SPG102

        def named(x):
            drawn = rounds(x)
            some = islice(drawn, dist.get_rank() + 1)  # SPG102
            return sum(some)

        def from_own(x):
            for value in islice(rounds(x), dist.get_rank(), 9):
                dist.all_reduce(value)  # SPG101

        def as_many(x, n):
            for value in islice(rounds(x), n):
                dist.all_reduce(value)
            return list(islice(rounds(x), dist.get_rank(), 9))

        def of_world(x):
            return sum(islice(rounds(x), dist.get_world_size()))

        def own_lines(path):
            for line in islice(lines(path), dist.get_rank()):
                print(line)

        def by_turns(x, count):
            for value in islice(rounds(x), dist.get_rank(), None, dist.get_world_size()):
                print(value)
        """,
        "SPG101",
        "SPG102",
        "SPG401",
    )
