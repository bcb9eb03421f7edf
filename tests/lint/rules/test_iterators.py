"""Iterators that run dry on one rank first: ``next`` in a loop, with a handler or a default."""

from __future__ import annotations

from tests.lint.rules.marked import agree

START = """
        import itertools
        from itertools import cycle, islice

        import torch
        import torch.distributed as dist
        from torch.nn.parallel import DistributedDataParallel as DDP

        class Packed:
            def __init__(self, lengths, budget):
                self.lengths, self.budget = lengths, budget

            def __iter__(self):
                pack = []
                for n in self.lengths:
                    if sum(pack) + n > self.budget:
                        yield pack
                        pack = []
                    pack.append(n)

        def lengths_for(rank):
            gen = torch.Generator().manual_seed(rank)
            return torch.randint(50, 400, (100,), generator=gen).tolist()

        def wrapped():
            return DDP(torch.nn.Linear(1, 1))
"""


def test_next_with_a_handler() -> None:
    """The handler of StopIteration leaves the loop, in it or around it, in a helper or not."""
    assert agree(
        START
        + """
        def inside(packs):
            model = wrapped()
            packs = iter(Packed(lengths_for(dist.get_rank()), 500))
            while True:
                try:
                    pack = next(packs)  # SPG102
                except StopIteration:
                    break
                model(pack).sum().backward()
            dist.barrier()

        def around(files):
            model = wrapped()
            mine = iter(files[dist.get_rank() :: dist.get_world_size()])
            try:
                while True:
                    model(next(mine)).sum().backward()  # SPG102
            except StopIteration:
                pass

        class Feed:
            def __init__(self, rank):
                self.it = iter(Packed(lengths_for(rank), 500))

            def get(self):
                try:
                    return next(self.it)
                except StopIteration:
                    return None

        def helper():
            feed = Feed(dist.get_rank())
            model = wrapped()
            while True:
                pack = feed.get()
                if pack is None:
                    break  # SPG102
                model(pack).sum().backward()
            dist.barrier()

        def share(files):
            for name in files[dist.get_rank() :: dist.get_world_size()]:
                yield name

        def generator(files):
            names = share(files)
            while True:
                try:
                    name = next(names)  # SPG102
                except StopIteration:
                    return
                dist.all_reduce(name)
        """,
        "SPG102",
        "SPG205",
    )


def test_next_with_a_default() -> None:
    """A default that marks the end leaves the loop."""
    assert agree(
        START
        + """
        def sentinel():
            model = wrapped()
            packs = iter(Packed(lengths_for(dist.get_rank()), 500))
            while True:
                pack = next(packs, None)
                if pack is None:  # SPG102
                    break
                model(pack).sum().backward()

        def with_a_limit(files, limit):
            mine = iter(files[dist.get_rank() :: dist.get_world_size()])
            for step in range(limit):
                name = next(mine, None)
                if name is None or step > 100:  # SPG102
                    print("at the end")
                    break
                dist.all_reduce(name)

        def walrus(files):
            mine = iter(files[dist.get_rank() :: dist.get_world_size()])
            while (name := next(mine, None)) is not None:
                dist.all_reduce(name)  # SPG402
        """,
        "SPG102",
        "SPG402",
    )


def test_iterators_that_last() -> None:
    """Begun anew, endless, as long on every rank, agreed on, or ended where nobody counts on it."""
    assert agree(
        START
        + """
        def anew(files):
            model = wrapped()
            mine = files[dist.get_rank() :: dist.get_world_size()]
            it = iter(mine)
            for _ in range(100):
                try:
                    name = next(it)
                except StopIteration:
                    it = iter(mine)
                    name = next(it)
                model(name).sum().backward()

        def endless(files):
            model = wrapped()
            mine = cycle(files[dist.get_rank() :: dist.get_world_size()])
            for _ in range(100):
                try:
                    model(next(mine)).sum().backward()
                except StopIteration:
                    break

        def numbers(seed):
            gen = torch.Generator().manual_seed(seed)
            while True:
                yield torch.rand(3, generator=gen)

        def drawn(steps):
            model = wrapped()
            batches = numbers(dist.get_rank())
            for batch in islice(batches, steps):
                model(batch).sum().backward()
            for batch in itertools.islice(numbers(dist.get_rank()), 20):
                dist.all_reduce(batch)

        def same(files):
            model = wrapped()
            it = iter(files)
            while True:
                try:
                    name = next(it)
                except StopIteration:
                    break
                model(name).sum().backward()

        def agreed(files):
            model = wrapped()
            it = iter(files[dist.get_rank() :: dist.get_world_size()])
            while True:
                name = next(it, None)
                ended = torch.tensor([int(name is None)])
                dist.all_reduce(ended, op=dist.ReduceOp.MAX)
                if ended.item():
                    break
                model(name).sum().backward()

        def rows(rank, world):
            for column in range(world):
                if column == rank:
                    yield torch.ones(2)
                else:
                    yield torch.zeros(2)

        def as_many():
            made = rows(dist.get_rank(), dist.get_world_size())
            while (row := next(made, None)) is not None:
                dist.all_reduce(row)

        def first(files):
            it = iter(files[dist.get_rank() :: dist.get_world_size()])
            shape = next(it)
            dist.all_reduce(shape)

        def local(files):
            it = iter(files[dist.get_rank() :: dist.get_world_size()])
            while True:
                try:
                    print(next(it))
                except StopIteration:
                    break
            dist.barrier()
        """,
        "SPG102",
        "SPG205",
        "SPG305",
        "SPG401",
        "SPG402",
    )


def test_slices_of_what_ends() -> None:
    """A slice takes no more than there is, and a number that the rank decides."""
    assert agree(
        """
        from itertools import islice

        import torch.distributed as dist

        def shares(files):
            mine = files[dist.get_rank() :: dist.get_world_size()]
            for name in islice(mine, 100):
                dist.all_reduce(name)  # SPG401

        def numbers(files):
            for name in islice(files, dist.get_rank()):
                dist.all_reduce(name)  # SPG401
        """,
        "SPG401",
    )


def test_next_runs_a_generator_once() -> None:
    """What a generator communicates stands in the trace once for each ``next``, not twice."""
    assert agree(
        """
        import torch.distributed as dist

        def items():
            dist.barrier()
            yield 1

        def by_hand_or_by_generator():
            if dist.get_rank() == 0:
                next(items())
            else:
                dist.barrier()

        def on_one_rank():
            if dist.get_rank() == 0:
                next(items())  # SPG104
        """,
        "SPG101",
        "SPG103",
        "SPG104",
    )
