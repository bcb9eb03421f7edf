"""The module behind a wrapper: its own forward and backward do not communicate, its own methods may."""

from __future__ import annotations

from tests.lint.rules.marked import agree


def test_the_module_behind_a_wrapper_computes_alone() -> None:
    """``unwrap_model(model)(x)`` and ``model.module(x)`` on one rank, and their backward passes."""
    assert agree(
        """
        import torch
        import torch.distributed as dist
        from accelerate import Accelerator
        from torch import nn
        from torch.nn.parallel import DistributedDataParallel as DDP

        def sample(batch):
            accelerator = Accelerator()
            model = accelerator.prepare(nn.Linear(3, 3))
            inner = accelerator.unwrap_model(model)
            if accelerator.is_main_process:
                inner.eval()
                print(inner(batch))

        def fits(accelerator, model, batch):
            inner = accelerator.unwrap_model(model)
            loss = inner(batch).mean()
            loss.backward()

        def largest(model, batch):
            accelerator = Accelerator()
            model = accelerator.prepare(model)
            try:
                fits(accelerator, model, batch)
            except RuntimeError as error:
                print(error)
            accelerator.wait_for_everyone()

        def probe(batch):
            model = DDP(nn.Linear(3, 3))
            if dist.get_rank() == 0:
                model.module(batch).mean().backward()
            model(batch).mean().backward()
        """,
        "SPG101",
        "SPG102",
        "SPG104",
        "SPG202",
    )


def test_the_wrapper_and_what_the_module_calls_itself_communicate() -> None:
    """The wrapped model on one rank, and a method of the module that reduces."""
    assert agree(
        """
        import torch.distributed as dist
        from accelerate import Accelerator
        from torch import nn
        from torch.nn.parallel import DistributedDataParallel as DDP

        class Net(nn.Module):
            def forward(self, x):
                return x

            def meet(self, x):
                dist.all_reduce(x)

        def wrapped(batch):
            accelerator = Accelerator()
            model = accelerator.prepare(nn.Linear(3, 3))
            if accelerator.is_main_process:
                model(batch)  # SPG101

        def unwrapped(batch):
            accelerator = Accelerator()
            model = accelerator.prepare(Net())
            if accelerator.is_main_process:
                accelerator.unwrap_model(model).meet(batch)  # SPG104

        def behind_ddp(batch):
            model = DDP(Net())
            if dist.get_rank() == 0:
                model.module.meet(batch)  # SPG104
        """,
        "SPG101",
        "SPG102",
        "SPG104",
        "SPG202",
    )
