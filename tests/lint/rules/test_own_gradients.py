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
