"""Results kept by this rank's own data: a rank that has seen its key before skips the collective."""

from __future__ import annotations

from tests.lint.rules.marked import agree

CODES = ("SPG101", "SPG102", "SPG104", "SPG305")


def test_functions_with_a_cache() -> None:
    """``lru_cache`` and the like around a collective, with a key of this rank's own."""
    assert agree(
        """
        import functools
        from functools import cache, lru_cache

        import torch
        import torch.distributed as dist

        @lru_cache(maxsize=None)
        def common(longest):
            value = torch.tensor([longest])
            dist.all_reduce(value, op=dist.ReduceOp.MAX)
            return int(value)

        def pad(loader):
            for rows in loader:
                common(max(map(len, rows)))  # SPG305

        class Groups:
            @functools.cache
            def of(self, size):
                return dist.new_group(list(range(size)))

            def run(self, loader):
                for batch in loader:
                    self.of(len(batch["label"].unique()))  # SPG305

        @cache
        def by_steps(step):
            return common(step)

        def agreed(loader, steps):
            for step in range(steps):
                by_steps(step)
            common(dist.get_rank())
            for rows in loader:
                longest = torch.tensor([rows.sum().item()])
                dist.all_reduce(longest)
                common(int(longest))

        @lru_cache
        def local(longest):
            return longest * 2

        def no_collective(loader):
            for rows in loader:
                local(rows.sum().item())
        """,
        *CODES,
    )


def test_own_dictionaries() -> None:
    """A dictionary of the class or the module that the function fills under its key."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        KEPT = {}

        def agreed(n):
            value = torch.tensor([n])
            dist.all_reduce(value)
            return int(value)

        def of_module(n):
            if n not in KEPT:
                KEPT[n] = agreed(n)  # SPG305
            return KEPT[n]

        class Widths:
            def __init__(self):
                self.kept = {}

            def leaves(self, n):
                if n in self.kept:
                    return self.kept[n]  # SPG102
                self.kept[n] = agreed(n)
                return self.kept[n]

            def asks(self, n):
                found = self.kept.get(n)
                if found is None:
                    found = self.kept[n] = agreed(n)  # SPG305
                return found

            def run(self, loader):
                for rows in loader:
                    self.leaves(rows.sum().item())
                    self.asks(rows.max().item())
                    of_module(rows.min().item())

            def fine(self, loader, steps):
                for step in range(steps):
                    self.leaves(step)
                    self.asks(step)
                    of_module(dist.get_rank())
        """,
        *CODES,
    )
