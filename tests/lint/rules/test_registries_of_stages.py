"""Loops along the pipeline over what the modules of this stage have recorded while they ran."""

from __future__ import annotations

from tests.lint.rules.marked import agree

CODES = ("SPG101", "SPG401", "SPG403")
BEGIN = """
import torch
import torch.distributed as dist
from torch import nn

SEEN, LOSSES = {}, []

def record(name, value):
    slots = SEEN.setdefault(name, torch.zeros(4))
    slots[0] += value

class Expert(nn.Module):
    def forward(self, x):
        record("balance", x.sum())
        LOSSES.append(x.mean())
        return x
"""


def test_as_many_rounds_as_this_stage_has_entries() -> None:
    """Entries of a dict and of a list, recorded in the forward pass and by a helper; groups by their names."""
    assert agree(
        BEGIN
        + """
def log(pp_group):
    for name, slots in SEEN.items():
        dist.all_reduce(slots, group=pp_group)  # SPG401
    SEEN.clear()

def log_in_order(mesh):
    for name in sorted(SEEN):
        dist.all_reduce(SEEN[name], group=mesh.pipeline_group)  # SPG401

def log_losses(pp_group):
    for loss in LOSSES:
        dist.all_reduce(loss, group=pp_group)  # SPG401
""",
        *CODES,
    )


def test_the_same_entries_everywhere() -> None:
    """Names that are written down, entries that the set-up makes too, a group whose ranks hold the same modules."""
    assert agree(
        BEGIN
        + """
NAMES = ("balance", "z")
TABLE = {}

def setup():
    for name in NAMES:
        TABLE[name] = torch.zeros(4)

class Router(nn.Module):
    def forward(self, x):
        TABLE["z"] += x.sum()
        return x

def log(pp_group):
    for name in NAMES:
        dist.all_reduce(SEEN.get(name, torch.zeros(4)), group=pp_group)
    for name in TABLE:
        dist.all_reduce(TABLE[name], group=pp_group)

def log_over_data(dp_group):
    for name, slots in SEEN.items():
        dist.all_reduce(slots, group=dp_group)

def log_given(SEEN, pp_group):
    for name, slots in SEEN.items():
        dist.all_reduce(slots, group=pp_group)
""",
        *CODES,
    )
