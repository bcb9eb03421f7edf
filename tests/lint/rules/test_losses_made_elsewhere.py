"""Losses that a function of another package computes with a wrapped model: their backward pass exchanges gradients."""

from __future__ import annotations

from tests.lint.rules.marked import agree

HEAD = """
import os
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from elsewhere import losses, workload

RANK = int(os.environ["RANK"])

def first_step(folder):
    if RANK != 0:
        return 0
    return torch.load(folder)["step"]
"""


def test_rounds_of_a_loss_made_elsewhere() -> None:
    """The model is an argument of an unknown function or method, by position or by name, whatever the batch is."""
    for loss in ("workload.loss(model, batch)", "losses(batch, net=model)", "losses(model, batch)[0].mean()"):
        assert agree(
            HEAD
            + f"""
def train(net, folder, steps):
    model = DDP(net)
    batches = iter(workload.batches(RANK))
    for step in range(first_step(folder), steps):
        batch = next(batches)
        loss = {loss}
        loss.backward()  # SPG401
""",
            "SPG401",
        )


def test_losses_of_what_is_wrapped_or_of_another_model() -> None:
    """The module inside a wrapper, and a model that is not wrapped, exchange nothing."""
    assert agree(
        HEAD
        + """
def inner(net, folder, steps):
    model = DDP(net)
    batches = iter(workload.batches(RANK))
    for step in range(first_step(folder), steps):
        losses(model.module, next(batches)).backward()

def probe(folder, steps):
    head = torch.nn.Linear(4, 4)
    batches = iter(workload.batches(RANK))
    for step in range(first_step(folder), steps):
        losses(head, next(batches)).backward()

def from_the_start(net, steps):
    model = DDP(net)
    batches = iter(workload.batches(RANK))
    for step in range(steps):
        losses(model, next(batches)).backward()
""",
        "SPG401",
    )


def test_where_a_loop_over_hidden_collectives_is_reported() -> None:
    """At the condition of a loop that stands in a generator; beside what it yields where the loop is over items."""
    assert agree(
        HEAD
        + """
def counted(folder):
    done = first_step(folder)
    while done < 10:  # SPG402
        done += 1
        yield done

def packed(data):
    for row in data:
        yield row

def by_condition(net, folder):
    model = DDP(net)
    for step in counted(folder):
        model(step).backward()

def by_items(net, rows):
    model = DDP(net)
    for row in packed(rows[RANK:]):
        model(row).backward()  # SPG401

def by_name(net, rows):
    for row in rows[RANK:]:
        dist.all_reduce(row)  # SPG401
""",
        "SPG401",
        "SPG402",
    )
