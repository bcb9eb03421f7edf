"""Keys that each rank draws, or has of its own data: where a clause expects it, some ranks find no item."""

from __future__ import annotations

from tests.lint.rules.marked import agree

CODES = ("SPG101", "SPG102", "SPG202", "SPG206", "SPG303", "SPG305")


def test_some_ranks_find_no_item() -> None:
    """The collective behind the item, in the else clause, behind a handler that leaves; of fields and parameters."""
    assert agree(
        """
        import random
        import torch.distributed as dist
        from torch.utils.data import DataLoader

        PRICES = {"apple": 0.4, "pear": 0.5}

        class Till:
            def __init__(self, seed):
                self.draw = random.Random(seed)

            def sell(self, x):
                fruit = self.draw.choice(["apple", "quince"])
                try:
                    price = PRICES[fruit]  # SPG102
                except KeyError:
                    price = 0.0
                else:
                    dist.all_reduce(x)

        def main(x):
            Till(dist.get_rank()).sell(x)

        def by_label(loader: DataLoader, x):
            for batch in loader:
                try:
                    price = PRICES[batch["label"]]  # SPG102
                except KeyError:
                    continue
                dist.all_reduce(x)

        def given(loader: DataLoader, prices, x):
            for batch in loader:
                try:
                    price = prices[batch["label"]]  # SPG102
                except LookupError:
                    continue
                dist.all_reduce(x)
        """,
        *CODES,
    )


def test_all_ranks_come_to_the_collective() -> None:
    """A handler that puts a price in, a key that is the same everywhere, no clause, local work, a question before."""
    assert agree(
        """
        import random
        import torch.distributed as dist
        from torch.utils.data import DataLoader

        PRICES = {"apple": 0.4, "pear": 0.5}

        def filled(loader: DataLoader, x):
            for batch in loader:
                try:
                    price = PRICES[batch["label"]]
                except KeyError:
                    price = 0.0
                dist.all_reduce(x)

        def shared(names, x):
            for name in names:
                try:
                    price = PRICES[name]
                except KeyError:
                    continue
                dist.all_reduce(x)

        def seeded(x):
            fruit = random.Random(7).choice(["apple", "quince"])
            try:
                price = PRICES[fruit]
            except KeyError:
                return
            dist.all_reduce(x)

        def without(loader: DataLoader, x):
            for batch in loader:
                price = PRICES[batch["label"]]
                dist.all_reduce(x)

        def local(loader: DataLoader, x):
            total = 0.0
            for batch in loader:
                try:
                    total += PRICES[batch["label"]]
                except KeyError:
                    continue
            dist.all_reduce(x)
        """,
        *CODES,
    )
