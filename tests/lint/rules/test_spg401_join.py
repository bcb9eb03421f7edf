"""SPG401 inside `Join`: what the wrapped model exchanges is shadowed, what the program reduces itself is not."""

from __future__ import annotations

import textwrap

import pytest

from tests.lint.rules.marked import agree

HEAD = textwrap.dedent(
    """
    import torch
    import torch.distributed as dist
    from accelerate import Accelerator
    from torch.distributed.algorithms.join import Join
    from torch.distributed.optim import ZeroRedundancyOptimizer
    from torch.nn.parallel import DistributedDataParallel as DDP

    def shares(files):
        for file in files[dist.get_rank() :: dist.get_world_size()]:
            yield torch.load(file)

    def record(loss):
        dist.all_reduce(loss)

    """
)


@pytest.mark.parametrize(
    "body",
    [
        """
        with model.join():
            for index in range(6 + dist.get_rank()):
                loss = model(torch.full((4,), index)).sum()
                loss.backward()
                dist.all_reduce(loss)  # SPG401
        """,
        """
        optimizer = torch.optim.SGD(model.parameters())
        with Join([model, optimizer]):
            for batch in shares(files):
                loss = model(batch).sum()
                loss.backward()
                optimizer.step()
                dist.all_gather_object([None] * 2, loss.item())  # SPG401
        """,
        """
        accelerator = Accelerator()
        model = accelerator.prepare(net)
        with accelerator.join_uneven_inputs([model]):
            for batch in files[dist.get_rank() :: dist.get_world_size()]:
                loss = model(batch).sum()
                accelerator.backward(loss)
                total = accelerator.gather(loss)  # SPG401
        """,
    ],
)
def test_own_collectives(body: str) -> None:
    """A reduction or a gathering of the loss in each round, of DDP, of several joinables, of Accelerate."""
    assert agree(_main(body), "SPG401")


@pytest.mark.parametrize(
    "body",
    [
        """
        with model.join():
            for batch in shares(files):
                model(batch).sum().backward()
            dist.barrier()
        """,
        """
        with model.join():
            for batch in shares(files):
                loss = model(batch).sum()
                loss.backward()
        record(loss)
        """,
        """
        with model.join(throw_on_early_termination=True):
            for batch in shares(files):
                loss = model(batch).sum()
                loss.backward()
                record(loss)
        """,
        """
        with model.join():
            for index in range(6):
                loss = model(files[index]).sum()
                loss.backward()
                record(loss)
        """,
        """
        optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam)
        with Join([model, optimizer]):
            for batch in shares(files):
                model(batch).sum().backward()
                optimizer.step()
        """,
        """
        with Join([model]):
            for batch in shares(files):
                Join.notify_join_context(model)
                record(model(batch))
        """,
    ],
)
def test_collectives_that_all_ranks_call(body: str) -> None:
    """Behind the loop or the block, as often on all ranks, where all leave together, with a notice to the context."""
    assert agree(_main(body), "SPG401")


def _main(body: str) -> str:
    head = "def main(net, files):\n    model = DDP(net)\n"
    return HEAD + head + textwrap.indent(textwrap.dedent(body), "    ")
