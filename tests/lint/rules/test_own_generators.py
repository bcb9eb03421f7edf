"""Generators of an object that goes through this rank's own items, and leaves out some of them."""

from __future__ import annotations

from tests.lint.rules.marked import agree

START = """
        import itertools
        import torch
        import torch.distributed as dist
        from torch.nn.parallel import DistributedDataParallel as DDP

        class Distinct:
            def __init__(self, rows, size):
                self.rows, self.size = rows, size

            def batches(self, seed):
                todo = list(range(len(self.rows)))
                while todo:
                    seen, batch, rest = set(), [], []
                    for i in todo:
                        text = self.rows[i][0]
                        if len(batch) < self.size and text not in seen:
                            seen.add(text)
                            batch.append(i)
                        else:
                            rest.append(i)
                    todo = rest
                    if len(batch) == self.size:
                        yield batch{there}
                    elif len(rest) < self.size:
                        return{left}

        class Plain:
            def __init__(self, rows, size):
                self.rows, self.size = rows, size

            def __iter__(self):
                batch = []
                count = 0
                for row in self.rows:
                    if count == 0:
                        print("the first one of this epoch")
                    count += 1
                    batch.append(row)
                    if count % self.size == 0:
                        print(count)
                    if count > 1_000_000:
                        print("many")
                    if count > 2_000_000:
                        print("very many")
                    yield row
                print("done", count)
"""
CODES = ("SPG101", "SPG102", "SPG401", "SPG402")
SHARE = "rows[dist.get_rank() :: dist.get_world_size()]"


def test_a_generator_that_skips() -> None:
    """Which batches there are depends on what is in the rank's own share."""
    assert agree(
        START.format(there="", left="  # SPG102").replace("while todo:", "while todo:  # SPG402")
        + f"""
        def train(net, rows):
            model = DDP(net)
            made = Distinct({SHARE}, 4)
            for epoch in range(3):
                batches = made.batches(epoch)
                for batch in batches:
                    model(batch).sum().backward()  # SPG101
        """,
        *CODES,
    )


def test_generators_that_are_as_long() -> None:
    """Cut to the least length of all ranks; all ranks have the same items, or as many of their own."""
    assert agree(
        START.format(there="", left="")
        + f"""
        def cut(net, rows):
            model = DDP(net)
            batches = list(Distinct({SHARE}, 4).batches(1))
            least = torch.tensor([len(batches)])
            dist.all_reduce(least, op=dist.ReduceOp.MIN)
            for batch in itertools.islice(batches, int(least.item())):
                model(batch).sum().backward()

        def the_same(net, rows):
            model = DDP(net)
            for batch in Distinct(rows, 4).batches(1):
                model(batch).sum().backward()

        def as_many(net, rows):
            model, rank = DDP(net), dist.get_rank()
            each = len(rows) // dist.get_world_size()
            for row in Plain(rows[rank * each : (rank + 1) * each], 4):
                model(row).sum().backward()
        """,
        *CODES,
    )


def test_a_generator_over_an_uneven_share() -> None:
    """A long generator that yields each item of a share of another length."""
    assert agree(
        START.format(there="", left="")
        + f"""
        def train(net, rows):
            model = DDP(net)
            for row in Plain({SHARE}, 4):
                model(row).sum().backward()  # SPG401
        """,
        *CODES,
    )
