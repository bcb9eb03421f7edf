"""Verdicts on a failure that ranks share behind a try with collectives in it: they meet those."""

from __future__ import annotations

from tests.lint.rules.marked import agree

RULES = (
    "SPG202",
    "SPG205",
)


def test_verdicts_that_come_too_late() -> None:
    """The failing rank tells its error while the others are still at the collectives of the try body."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        def check(batch):
            if batch.isnan().any():
                raise ValueError("not a number")
            return batch

        def compute(model, batch):
            loss = model(check(batch))
            dist.all_reduce(loss)
            return loss

        def told_too_late(model, loader):
            for batch in loader:
                error = None
                try:
                    loss = compute(model, batch)
                except ValueError as caught:
                    error = caught
                failed = torch.tensor(float(error is not None))
                dist.all_reduce(failed, op=dist.ReduceOp.MAX)  # SPG205
                if failed.item():
                    raise error or RuntimeError("another rank failed")

        def by_objects(model, loader):
            for batch in loader:
                message = None
                try:
                    if batch.sum() > 3:
                        raise ValueError("too large")
                    dist.broadcast(batch, src=0)
                except ValueError as caught:
                    message = str(caught)
                found = [None] * dist.get_world_size()
                dist.all_gather_object(found, message)  # SPG205
                if any(found):
                    raise RuntimeError(found)

        def told_first(model, loader):
            for batch in loader:
                error = None
                try:
                    batch = check(batch)
                except ValueError as caught:
                    error = caught
                failed = torch.tensor(float(error is not None))
                dist.all_reduce(failed, op=dist.ReduceOp.MAX)
                if failed.item():
                    raise error or RuntimeError("another rank failed")
                compute(model, batch)

        def not_told(model, loader):
            for batch in loader:
                try:
                    if batch.sum() > 3:
                        raise ValueError("too large")  # SPG205
                    dist.all_reduce(batch)
                except ValueError:
                    continue
                dist.barrier()
        """,
        *RULES,
    )
