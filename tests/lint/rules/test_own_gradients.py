"""Gradients that a rank lacks because it holds no piece of the parameter: FSDP with ``use_orig_params``."""

from __future__ import annotations

from tests.lint.rules.marked import agree

PROGRAM = """
import functools
import torch
import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP

def norm(value):
    total = value.float().pow(2).sum()
    dist.all_reduce(total)
    return total.sqrt()

class Monitor:
    def __init__(self, model):
        self.model = model

    def collect(self):
        found = {{}}
        for name, p in self.model.named_parameters():
            if p.grad is None:
                continue{leaves}
            found[name] = norm(p.grad)
        return found

def each(model):
    for p in model.parameters():
        if p.grad is not None:
            dist.all_reduce(p.grad){inside}

def every_rank_alike(model):
    for p in model.parameters():
        grad = torch.zeros(1) if p.grad is None else p.grad
        norm(grad)

def at_the_end(model):
    total = torch.zeros(1)
    for p in model.parameters():
        if p.grad is not None:
            total += p.grad.norm() ** 2
    dist.all_reduce(total)

def wrap(net):
    return {wrap}
"""


def test_parameters_in_pieces() -> None:
    """A reduction for each gradient that there is; with whole or flat parameters all ranks have the same ones."""
    for wrap, found in (
        ("FSDP(net, use_orig_params=True)", True),
        ("functools.partial(FSDP, use_orig_params=True)(net)", True),
        ("FSDP(net)", False),
        ("FSDP(net, use_orig_params=False)", False),
        ("net", False),
    ):
        leaves, inside = ("  # SPG102", "  # SPG305") if found else ("", "")
        source = PROGRAM.format(wrap=wrap, leaves=leaves, inside=inside)
        assert agree(source, "SPG102", "SPG305")


def test_modules_called_by_the_keys_of_the_data() -> None:
    """A rank without a sample of one kind has no gradient of its module; zeros in its place are met by all."""
    assert agree(
        """
        import torch
        import torch.distributed as dist
        from torch import nn

        class Learner:
            def __init__(self, names):
                self.policies = nn.ModuleDict({n: nn.Linear(8, 2) for n in names})

            def average(self):
                for param in self.policies.parameters():
                    if param.grad is None:
                        continue  # SPG102
                    dist.all_reduce(param.grad)

            def average_present(self):
                for param in self.policies.parameters():
                    if param.grad is not None:
                        dist.all_reduce(param.grad)  # SPG305

            def average_filled(self):
                for param in self.policies.parameters():
                    if param.grad is None:
                        param.grad = torch.zeros_like(param)
                    dist.all_reduce(param.grad)

            def update(self, episodes):
                for name, observations in episodes.items():
                    self.policies[name](observations).mean().backward()
                self.average()
        """,
        "SPG102",
        "SPG305",
    )
    assert agree(
        """
        import torch.distributed as dist
        from torch import nn

        class Heads(nn.Module):
            def forward(self, batch):
                return sum(self.heads[task](batch[task]).mean() for task in batch)

            def losses(self, batch):
                total = 0
                for task in batch:
                    total += self.heads[task](batch[task]).mean()
                return total

        def average(model):
            for p in model.parameters():
                if p.grad is not None:
                    dist.all_reduce(p.grad)  # SPG305
        """,
        "SPG102",
        "SPG305",
    )


def test_modules_called_in_a_fixed_order() -> None:
    """Names that the program is set up with, layers by number, and lists of features are the same on all ranks."""
    assert agree(
        """
        import torch.distributed as dist
        from torch import nn

        class Net(nn.Module):
            def forward(self, x, names):
                for name in names:
                    x = self.blocks[name](x)
                for name, block in self.blocks.items():
                    x = self.norms[name](block(x))
                return x

            def pyramid(self, features):
                return [self.heads[level](feature) for level, feature in enumerate(features)]

            def scales(self, features):
                for level, feature in enumerate(features):
                    yield self.heads[level](feature)

        def average(model):
            for p in model.parameters():
                if p.grad is not None:
                    dist.all_reduce(p.grad)
        """,
        "SPG102",
        "SPG305",
    )
