"""SPG310: arguments that a rank gives or leaves out, and norms that exchange in the forward pass."""

from __future__ import annotations

import pytest

from tests.lint.rules.marked import agree

PROGRAM = """
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(8)

    def forward(self, x):
        return self.norm(x)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(8, 8)
        self.second = BUILT

    def forward(self, x, before=None):
        now = self.first(x)
        if before is None:
            return nowCODE
        return now + self.second(before)

def train(steps, data):
    net = Net()
    net = WRAPPED
    every = LENGTH
    before = None
    for step in range(steps):
        if step % every == 0:
            before = None
        now = net(torch.randn(4, 8), before)
        now.sum().backward()
        before = now.detach()
"""
CONVERTED = "DDP(nn.SyncBatchNorm.convert_sync_batchnorm(net), find_unused_parameters=True)"
SEQUENCE = "nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8))"
BY_RANK = "4 + dist.get_rank()"


def _program(built: str, wrapped: str, length: str, code: str) -> str:
    return (
        PROGRAM.replace("BUILT", built)
        .replace("WRAPPED", wrapped)
        .replace("LENGTH", length)
        .replace("CODE", code)
    )


@pytest.mark.parametrize(
    ("built", "wrapped", "length"),
    [
        (SEQUENCE, CONVERTED, BY_RANK),
        ("Block()", CONVERTED, BY_RANK),
        ("nn.SyncBatchNorm(8)", "DDP(net, find_unused_parameters=True)", BY_RANK),
        ("nn.Linear(8, 8)", "DDP(net)", BY_RANK),
        (SEQUENCE, "DDP(net)", "2 if dist.get_rank() % 2 else 3"),
    ],
)
def test_an_argument_that_comes_at_other_steps_on_each_rank(built: str, wrapped: str, length: str) -> None:
    """A norm of all ranks waits in the forward pass, whatever DDP is told; other modules in the backward pass."""
    assert agree(_program(built, wrapped, length, "  # SPG310"), "SPG310")


@pytest.mark.parametrize(
    ("built", "wrapped", "length"),
    [
        (SEQUENCE, CONVERTED, "4"),
        ("nn.Linear(8, 8)", CONVERTED, BY_RANK),
        (SEQUENCE, "DDP(net, find_unused_parameters=True)", BY_RANK),
        ("nn.Linear(8, 8)", "DDP(net)", "dist.get_world_size()"),
        (SEQUENCE, "nn.SyncBatchNorm.convert_sync_batchnorm(net)", "steps"),
    ],
)
def test_the_same_steps_and_modules_that_need_not_take_part(built: str, wrapped: str, length: str) -> None:
    """One length for all ranks; no norm, or none that was converted, where DDP finds unused parameters."""
    assert agree(_program(built, wrapped, length, ""), "SPG310")
