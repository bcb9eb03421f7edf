"""SPG305: collectives that depend on this rank's own data."""

from __future__ import annotations

from tests.lint.rules.marked import agree

DATA = ("SPG101", "SPG102", "SPG305", "SPG401", "SPG402")


def test_data_decides() -> None:
    """What a batch holds, a gathered subset, a local statistic."""
    assert agree(
        """
        import torch
        import torch.distributed as dist
        from torch.utils.data import DataLoader

        def positives(loader: DataLoader):
            for batch in loader:
                found = batch["label"].sum()
                if found > 0:
                    dist.all_reduce(found)  # SPG305

        def two_ways(loader: DataLoader):
            for batch in loader:
                if batch["x"].max() > 1:
                    dist.all_reduce(batch["x"])  # SPG305
                else:
                    dist.barrier()

        def kept(loader: DataLoader):
            for batch in loader:
                rows = [row for row in batch["rows"] if row.sum() > 0]
                if rows:
                    dist.all_gather_object([None], rows)  # SPG305
        """,
        *DATA,
    )


def test_shared_data_is_silent() -> None:
    """Reduced and gathered values, the kind of an object, and data that decides nothing collective."""
    assert agree(
        """
        import torch
        import torch.distributed as dist
        from torch.utils.data import DataLoader

        def reduced(loader: DataLoader):
            for batch in loader:
                found = batch["label"].sum()
                dist.all_reduce(found)
                if found > 0:
                    dist.barrier()

        def gathered(loader: DataLoader):
            for batch in loader:
                sizes = [None] * dist.get_world_size()
                dist.all_gather_object(sizes, len(batch))
                if min(sizes) > 0:
                    dist.all_reduce(batch)

        def kind(loader: DataLoader):
            for batch in loader:
                if isinstance(batch, dict):
                    dist.all_reduce(batch["x"])

        def local(loader: DataLoader):
            for batch in loader:
                if batch.sum() > 0:
                    batch = batch * 2
                dist.all_reduce(batch)
        """,
        *DATA,
    )
