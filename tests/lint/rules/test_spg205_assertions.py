"""SPG205: assertions that end one rank of a run."""

from __future__ import annotations

from tests.lint.rules.marked import agree

RAISES = ("SPG101", "SPG102", "SPG205")


def test_assertions_on_numbers_that_are_not_finite() -> None:
    """What a run comes to is no precondition: an `assert` on it is a raise. Any other assertion is taken to hold."""
    assert agree(
        """
        import math
        import torch
        import torch.distributed as dist
        from torch.nn.parallel import DistributedDataParallel as DDP

        def on_loss(model, loader):
            model = DDP(model)
            for x in loader:
                loss = model(x).sum()
                assert torch.isfinite(loss), loss  # SPG205
                loss.backward()

        def below_a_test(model, loader):
            model = DDP(model)
            for x in loader:
                loss = model(x).sum()
                if not math.isfinite(loss.item()):
                    print("stopping")
                    assert False  # SPG205
                loss.backward()

        def by_its_message(model, loader):
            model = DDP(model)
            for x in loader:
                loss = model(x).sum()
                assert loss == loss, f"loss is NaN: {loss}"  # SPG205
                loss.backward()

        def own_result(model, x):
            model = DDP(model)
            assert torch.isfinite(model(x)).all()
            dist.barrier()

        def of_a_step(loss):
            assert not loss.isnan(), loss  # SPG205
            dist.all_reduce(loss)

        def of_the_sum(model, loader):
            model = DDP(model)
            for x in loader:
                loss = model(x).sum()
                dist.all_reduce(loss)
                assert torch.isfinite(loss), loss
                loss.backward()

        def of_the_settings(model, loader, lr):
            assert math.isfinite(lr), lr
            model = DDP(model)
            for x in loader:
                loss = model(x).sum()
                assert loss.ndim == 0
                loss.backward()

        def caught(model, loader):
            model = DDP(model)
            for x in loader:
                try:
                    loss = model(x).sum()
                    assert torch.isfinite(loss)
                except AssertionError:
                    loss = torch.zeros((), requires_grad=True)
                loss.backward()
        """,
        *RAISES,
    )
