"""Dicts of losses that a model fills by its own data: reduced key by key, ranks make other numbers of calls."""

from __future__ import annotations

from tests.lint.rules.marked import agree

CODES = ("SPG401", "SPG305")
HEAD = """
from collections import OrderedDict

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

def reduced(losses):
    told = OrderedDict((name, value) for name, value in losses.items())
    for name, value in told.items():
        dist.all_reduce(value){}
"""


def forward(body: str, report: str, *, made: str = "DDP(Net().cuda())") -> str:
    """A model whose forward has this body, and the loop that reduces what it gives."""
    lines = "\n".join(" " * 8 + line for line in body.strip().splitlines())
    return (
        HEAD.format(report)
        + f"""
class Net(nn.Module):
    def forward(self, image, target):
{lines}

def train(loader):
    model = {made}
    for image, target in loader:
        reduced(model(image.cuda(), target.cuda()))
"""
    )


UNEVEN = (
    """
losses = OrderedDict(loss=image.sum())
if (target > 0).any():
    losses["mask"] = image.mean()
return losses
""",
    """
losses = {"loss": image.sum()}
if not target.any():
    return losses
losses["mask"] = image.mean()
return losses
""",
    """
losses = dict(loss=image.sum())
if target.any():
    losses.update(mask=image.mean())
return losses
""",
    """
losses = {}
if target.any():
    losses["mask"] = image.mean()
else:
    losses["no_mask"] = image.mean()
    losses["loss"] = image.sum()
return losses
""",
    """
losses = {}
if target.any():
    if target.all():
        losses["mask"] = image.mean()
else:
    losses["mask"] = image.sum() * 0
return losses
""",
)

EVEN = (
    """
losses = OrderedDict(loss=image.sum())
if (target > 0).any():
    losses["mask"] = image.mean()
else:
    losses["mask"] = image.sum() * 0
return losses
""",
    """
losses = {}
if target.any():
    losses["mask"] = image.mean()
    losses["loss"] = image.sum()
elif target.sum() > 3:
    losses["loss"] = losses["mask"] = image.sum() * 0
else:
    losses["loss"] = image.sum()
    losses["mask"] = image.sum() * 0
return losses
""",
    """
losses = {"loss": image.sum(), "mask": image.sum() * 0}
if target.any():
    losses["mask"] = image.mean()
return losses
""",
)


def test_keys_by_own_data() -> None:
    """A loss that is there only where this rank's batch has targets."""
    for body in UNEVEN:
        assert agree(forward(body, "  # SPG401"), *CODES)
    assert agree(forward(UNEVEN[0], "  # SPG401", made="Net()"), *CODES)


def test_the_same_keys_on_all_ways() -> None:
    """Both arms put something under the key, or it was there before."""
    for body in EVEN:
        assert agree(forward(body, ""), *CODES)
    assert agree(forward(EVEN[0], "", made="Net()"), *CODES)


def test_arms_within_an_arm() -> None:
    """Keys that both inner arms add under an outer condition are there for the outer one alone."""
    assert agree(
        HEAD.format("  # SPG401")
        + """
def train(losses, wanted, image):
    told = {"loss": image.sum()}
    if dist.get_rank() == 0:
        if wanted:
            told["mask"] = image.mean()
        else:
            told["mask"] = image.sum()
    reduced(told)
""",
        *CODES,
    )
    assert agree(
        HEAD.format("")
        + """
def train(losses, wanted, image):
    told = {"loss": image.sum()}
    if dist.get_rank() == 0:
        told["mask"] = image.mean()
    else:
        told["mask"] = image.sum()
    reduced(told)
""",
        *CODES,
    )
