"""SPG402: while loops that end on this rank's own state."""

from __future__ import annotations

from tests.lint.rules.marked import agree

LOOPS = ("SPG101", "SPG102", "SPG401", "SPG402")


def test_local_conditions() -> None:
    """A local error, a local queue, the rank itself."""
    assert agree(
        """
        import torch.distributed as dist
        from torch.utils.data import DataLoader

        def by_rank(x):
            turns = 0
            while turns < dist.get_rank():
                dist.all_reduce(x)  # SPG402
                turns += 1

        def by_error(step, loader: DataLoader, tolerance):
            for batch in loader:
                error = batch["x"].norm()
                while error > tolerance:
                    dist.all_reduce(batch["x"])  # SPG402
                    error = error / 2

        def by_share(files, x):
            todo = files[dist.get_rank() :: dist.get_world_size()]
            while todo:
                dist.all_reduce(x)  # SPG402
                todo.pop()
        """,
        *LOOPS,
    )


def test_shared_conditions_are_silent() -> None:
    """A reduced error, a count that all ranks share, an endless loop with an agreed break."""
    assert agree(
        """
        import torch
        import torch.distributed as dist
        from torch.utils.data import DataLoader

        def reduced(step, tolerance):
            error = step()
            dist.all_reduce(error)
            while error > tolerance:
                error = step()
                dist.all_reduce(error)

        def counted(x, turns):
            done = 0
            while done < turns:
                dist.all_reduce(x)
                done += 1

        def agreed(step, flag):
            while True:
                flag.fill_(step())
                dist.all_reduce(flag)
                if flag.item():
                    break
        """,
        *LOOPS,
    )
