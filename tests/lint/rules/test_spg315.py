"""SPG315: parameters that are gathered to be read, and changed."""

from __future__ import annotations

from tests.lint.rules.marked import agree

HEAD = """
import deepspeed
import torch
import torch.nn.init as init
from deepspeed.runtime.zero import GatheredParameters
"""


def test_changes_are_lost() -> None:
    """Rows, data, methods that write, initialisers, loops over what was gathered."""
    assert agree(
        HEAD
        + """
def rows(model, added):
    table = model.get_input_embeddings().weight
    head = model.get_output_embeddings().weight
    with deepspeed.zero.GatheredParameters([table, head]):  # SPG315
        with torch.no_grad():
            for weight in (table, head):
                weight[-added:] = weight[:-added].mean(0)

def methods(layer, values):
    with GatheredParameters(layer.weight, modifier_rank=None):  # SPG315
        layer.weight.data.copy_(values)

def initialised(layer):
    with GatheredParameters([layer.weight, layer.bias]):  # SPG315
        init.normal_(layer.weight)
        torch.nn.init.zeros_(layer.bias)

def looped(model, factor):
    with GatheredParameters(list(model.parameters())):  # SPG315
        if torch.distributed.get_rank() == 0:
            for name, parameter in model.named_parameters():
                parameter.data *= factor

def named(model, rows):
    weights = [model.wte.weight]
    with torch.no_grad(), GatheredParameters(weights):  # SPG315
        model.wte.weight[0] = rows

def renewed(layer):
    with GatheredParameters(layer.parameters()):  # SPG315
        layer.reset_parameters()
""",
        "SPG315",
    )


def test_kept_or_read() -> None:
    """A rank is named, the parameters are read only, copies and other tensors are changed."""
    assert agree(
        HEAD
        + """
def kept(layer, me):
    with GatheredParameters(layer.weight, modifier_rank=0):
        init.normal_(layer.weight)
    with GatheredParameters(layer.weight, 0):
        init.normal_(layer.weight)
    with GatheredParameters(layer.weight, modifier_rank=me):
        layer.weight[0] = 1

def read(layer, new, **options):
    with GatheredParameters(layer.weight):
        new.weight.data.copy_(layer.weight)
        mean = layer.weight.clone().mul_(2)
        layer.weight.requires_grad_(False)
        state = {}
        state["weight"] = layer.weight.cpu()
        layer.weight.grad.zero_()
    with GatheredParameters(layer.weight, **options):
        layer.weight[0] = 1
    layer.weight[0] = 1
    return mean, state
""",
        "SPG315",
    )


def test_miss_in_a_function() -> None:
    """Known miss: another function changes what was gathered."""
    assert agree(
        HEAD
        + """
def change(weight):
    weight[0] = 1

def gathered(layer):
    with GatheredParameters(layer.weight):
        change(layer.weight)
""",
        "SPG315",
    )
