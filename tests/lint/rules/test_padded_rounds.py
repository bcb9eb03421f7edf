"""Loops and iterators that end in the same round everywhere: padded shares, iterators that are told when to end."""

from __future__ import annotations

from tests.lint.rules.marked import agree

HEAD = """
    import itertools
    from itertools import chain, cycle, islice, repeat

    import torch
    import torch.distributed as dist

    def most(n):
        t = torch.tensor([n])
        dist.all_reduce(t, op=dist.ReduceOp.MAX)
        return int(t)
"""


def test_padded_without_an_end() -> None:
    """A rank's own share, followed by something endless, cut off at an agreed number."""
    assert agree(
        HEAD
        + """
    def run(files, score):
        mine = files[dist.get_rank() :: dist.get_world_size()]
        rounds = most(len(mine))
        for file in islice(chain(mine, repeat(None)), rounds):
            dist.all_reduce(score(file))
        for file in itertools.islice(itertools.chain(mine, itertools.cycle([None])), rounds):
            dist.all_reduce(score(file))
        for _, file in zip(range(rounds), chain(mine, repeat(None))):
            dist.all_reduce(score(file))
        [dist.all_reduce(score(file)) for file in islice(cycle(mine), rounds)]
    """,
        "SPG401",
    )


def test_padded_with_an_end() -> None:
    """What is appended has an end itself, or is cut off at a number of this rank's own."""
    assert agree(
        HEAD
        + """
    def run(files, score):
        mine = files[dist.get_rank() :: dist.get_world_size()]
        rounds = most(len(mine))
        for file in islice(chain(mine, [None, None]), rounds):
            dist.all_reduce(score(file))  # SPG401
        for file in islice(chain(mine, repeat(None)), len(mine)):
            dist.all_reduce(score(file))  # SPG401
        for file in chain(mine, repeat(None, 2)):
            dist.all_reduce(score(file))  # SPG401
        for _ in repeat(None, len(mine)):
            dist.all_reduce(score(_))  # SPG401
    """,
        "SPG401",
    )


def test_iterator_that_is_told_when_to_end() -> None:
    """``__next__`` ends on every rank in the same round, however the ranks' own fields differ."""
    assert agree(
        HEAD
        + """
    class Commands:
        def __init__(self, stream):
            self.rank = dist.get_rank()
            self.stream = stream

        def __iter__(self):
            return self

        def __next__(self):
            box = [self.stream.readline() if self.rank == 0 else None]
            dist.broadcast_object_list(box, src=0)
            if box[0] == "quit":
                raise StopIteration
            return box[0]

    class Rounds:
        def __init__(self, rounds):
            self.rank, self.left = dist.get_rank(), rounds

        def __iter__(self):
            return self

        def __next__(self):
            if self.left == 0:
                raise StopIteration()
            self.left -= 1
            return self.rank

    def run(stream, rounds, x):
        for word in Commands(stream):
            dist.all_reduce(x)
        for _ in Rounds(rounds):
            dist.all_reduce(x)
    """,
        "SPG401",
        "SPG205",
        "SPG102",
    )


def test_iterator_that_ends_by_its_own_share() -> None:
    """``__next__`` ends where this rank's own items do."""
    assert agree(
        HEAD
        + """
    class Share:
        def __init__(self, files):
            self.files = files[dist.get_rank() :: dist.get_world_size()]
            self.at = 0

        def __iter__(self):
            return self

        def __next__(self):
            if self.at >= len(self.files):
                raise StopIteration
            self.at += 1
            return self.files[self.at - 1]

    class Unclear:
        def __init__(self, files):
            self.inner = iter(files[dist.get_rank() :: dist.get_world_size()])

        def __iter__(self):
            return self

        def __next__(self):
            return next(self.inner)

    def run(files, x):
        for file in Share(files):
            dist.all_reduce(x)  # SPG401
        for file in Unclear(files):
            dist.all_reduce(x)  # SPG401
    """,
        "SPG401",
        "SPG205",
        "SPG102",
    )
