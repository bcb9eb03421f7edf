"""Functions too long to be followed for their own sake, which are followed because they hide a collective."""

from __future__ import annotations

import re
import textwrap

from tests.lint.rules.marked import agree


def filled(source: str) -> str:
    """The source with sixteen lines of printing in place of each line ``FILL``."""
    return re.sub(
        r"(?m)^( *)FILL$",
        lambda m: "\n".join(f"{m[1]}print({n})" for n in range(16)),
        textwrap.dedent(source),
    )


def test_a_long_step_that_calls_backward() -> None:
    """A method that only passes the model on and calls ``backward()`` communicates."""
    assert agree(
        filled(
            """
            import torch.distributed as dist
            from torch.nn.parallel import DistributedDataParallel

            class Trainer:
                def __init__(self, net):
                    self.net = DistributedDataParallel(net)

                def one_step(self, batch):
                    FILL
                    loss = self.net(batch).mean()
                    loss.backward()

                def fit(self, batches):
                    for batch in batches:
                        if dist.get_rank() == 0:
                            self.one_step(batch)  # SPG104
            """
        ),
        "SPG104",
    )


def test_a_long_evaluation_of_a_wrapped_model() -> None:
    """A method that calls the wrapped model of its object communicates; with a plain model it does not."""
    assert agree(
        filled(
            """
            import torch.distributed as dist
            from torch.nn.parallel import DistributedDataParallel

            class Trainer:
                def __init__(self, net):
                    self.wrapped = DistributedDataParallel(net)
                    self.plain = net

                def score(self, batches):
                    FILL
                    return sum(self.wrapped(batch).sum() for batch in batches)

                def score_plainly(self, batches):
                    FILL
                    return sum(self.plain(batch).sum() for batch in batches)

                def run(self, batches):
                    if dist.get_rank() == 0:
                        self.score_plainly(batches)
                    if dist.get_rank() == 0:
                        self.score(batches)  # SPG104
                    dist.barrier()
            """
        ),
        "SPG104",
    )


def test_a_long_helper_that_wraps_a_model() -> None:
    """A helper that makes a model distributed is read, and what it returns is known to communicate."""
    assert agree(
        filled(
            """
            import torch.distributed as dist
            from torch.nn.parallel import DistributedDataParallel

            def wrap(net):
                FILL
                return DistributedDataParallel(net)

            def main(net, batch):
                model = wrap(net)
                if dist.get_rank() == 0:
                    model(batch)  # SPG101
            """
        ),
        "SPG101",
    )
