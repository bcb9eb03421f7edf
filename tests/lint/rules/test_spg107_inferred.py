"""SPG107: dtypes that follow from Python numbers, and dtypes out of a table."""

from __future__ import annotations

import pytest

from tests.lint.rules.marked import agree

CALL = """
    import torch
    import torch.distributed as dist

    def share(total, count, n):
        rank = dist.get_rank()
        dist.all_reduce(MADE)CODE
"""


@pytest.mark.parametrize(
    "made",
    [
        "torch.tensor(1.0 if rank == 0 else 0)",
        "torch.as_tensor(0 if rank else total / 2)",
        "torch.tensor([1.0, 2.0] if rank == 0 else [0, 0])",
        "torch.full((n,), 0.5) if rank == 0 else torch.full((n,), 0)",
        "torch.tensor(len(total)) if rank == 0 else torch.zeros(())",
        "torch.tensor(rank == 0) if rank == 0 else torch.tensor(0)",
        "torch.ones(n, dtype={0: torch.float32, 1: torch.float64}[rank % 2])",
        "torch.ones(n).to([torch.half, torch.half, torch.float][rank % 3])",
    ],
)
def test_numbers_of_other_types(made: str) -> None:
    """A float on one rank and a whole number, or a truth, on another; a dtype at the rank's place of a table."""
    assert agree(CALL.replace("MADE", made).replace("CODE", "  # SPG107"), "SPG107")


@pytest.mark.parametrize(
    "made",
    [
        "torch.tensor(1 if rank == 0 else 0)",
        "torch.tensor(float(rank == 0))",
        "torch.tensor(float(rank)) if rank == 0 else torch.zeros(())",
        "torch.tensor(rank * 0.5 if rank else 0.0)",
        "torch.tensor(1.0 if rank == 0 else 0, dtype=torch.float32)",
        "torch.tensor(1.0 if rank == 0 else 0).float()",
        "torch.tensor(total if rank == 0 else 0)",
        "torch.tensor([rank, 1.0])",
        "torch.full((n,), float(rank)) if rank else torch.zeros(n)",
        "torch.tensor(len(total)) if rank == 0 else torch.zeros((), dtype=torch.int64)",
        "torch.ones(n).to([torch.half, torch.half][rank % 2])",
        "torch.ones(n, dtype={0: torch.float32, 1: torch.float}[rank % 2])",
    ],
)
def test_numbers_of_one_type(made: str) -> None:
    """The same type in other words, a named dtype, a conversion, and numbers of which the type is not known."""
    assert agree(CALL.replace("MADE", made).replace("CODE", ""), "SPG107")


def test_numbers_that_own_data_chooses() -> None:
    """A mean where a rank has seen something, the whole number 0 where it has not; tensors of several types."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        def mean_of(loader, model):
            losses = []
            for batch in loader:
                if batch["mask"].any():
                    losses.append(model(batch).item())
            dist.all_reduce(torch.tensor(sum(losses) / len(losses) if losses else 0))  # SPG107
            dist.all_reduce(torch.tensor(sum(losses) / len(losses) if losses else 0.0))

        def by_setting(total, fast):
            dist.all_reduce(torch.tensor(0 if fast else total / 2))

        class Meter:
            def __init__(self):
                self.rank = dist.get_rank()

            def collect(self, rows, loss):
                return {
                    "rows": torch.tensor(rows, dtype=torch.int32),
                    "loss": loss.detach(),
                    "main": torch.tensor(0.5 if self.rank else 1),
                }

            def collect_alike(self, rows, loss):
                return {"rows": torch.tensor(rows, dtype=torch.int32), "main": torch.tensor(0.5 if self.rank else 1.0)}

        def log(rows, loss):
            for value in Meter().collect(rows, loss).values():
                dist.all_reduce(value)  # SPG107
            for value in Meter().collect_alike(rows, loss).values():
                dist.all_reduce(value)
        """,
        "SPG107",
    )


def test_known_limit_of_lists_with_computed_numbers() -> None:
    """The types of a list's items are read where all of them are written down."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        def share(total):
            rank = dist.get_rank()
            dist.all_reduce(torch.tensor([total / 2, 1] if rank == 0 else [0, 0]))
        """,
        "SPG107",
    )
