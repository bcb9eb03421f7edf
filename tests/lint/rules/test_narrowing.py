"""What ``isinstance`` tells of a value: below it, methods of the class communicate."""

from __future__ import annotations

from tests.lint.rules.marked import agree

ARMS = ("SPG101", "SPG102", "SPG104", "SPG105")

HEAD = """
import torch
import torch.distributed as dist
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.distributed.optim import ZeroRedundancyOptimizer as Sharded
"""


def test_below_a_test_of_the_class() -> None:
    """A name, an attribute, a chain, a part of a test, and the rest of a function that others have left."""
    assert agree(
        HEAD
        + """
def by_name(runner):
    optimizer = runner.wrapper.optimizer
    if dist.get_rank() == 0:
        if isinstance(optimizer, ZeroRedundancyOptimizer):
            optimizer.consolidate_state_dict(to=0)  # SPG101

def by_chain(runner):
    if dist.get_rank() == 0 and isinstance(runner.optimizer, Sharded):
        runner.optimizer.consolidate_state_dict()  # SPG101

def after_the_others_left(optimizer):
    if not isinstance(optimizer, dist.optim.ZeroRedundancyOptimizer):
        return
    if dist.get_rank() == 0:
        optimizer.consolidate_state_dict()  # SPG101

class Saver:
    def state(self, runner):
        if isinstance(runner.optimizer, Sharded):
            runner.optimizer.consolidate_state_dict(to=0)
        return runner.optimizer.state_dict()

    def write(self, runner, path):
        if dist.get_rank() == 0:
            torch.save(self.state(runner), path)  # SPG104

    def write_own(self, path):
        if dist.get_rank() == 0:
            if isinstance(self.optimizer, Sharded) and path:
                self.optimizer.consolidate_state_dict()  # SPG101
""",
        *ARMS,
    )


def test_where_nothing_is_told() -> None:
    """On every rank, for another value of the same name, in the other arm and after the test nothing is reported."""
    assert agree(
        HEAD
        + """
def on_every_rank(optimizer, path):
    if isinstance(optimizer, ZeroRedundancyOptimizer):
        optimizer.consolidate_state_dict()
    if dist.get_rank() == 0:
        torch.save(optimizer.state_dict(), path)

def another_value(optimizer, make):
    if dist.get_rank() == 0:
        if isinstance(optimizer, ZeroRedundancyOptimizer):
            optimizer = make()
            optimizer.step()

def the_other_arm(optimizer):
    if dist.get_rank() == 0:
        if isinstance(optimizer, ZeroRedundancyOptimizer):
            print("sharded")
        else:
            optimizer.step()
        optimizer.step()

def left_in_an_arm(optimizer, strict):
    if strict:
        if not isinstance(optimizer, ZeroRedundancyOptimizer):
            return
    if dist.get_rank() == 0:
        optimizer.step()

def a_class_that_is_local(value):
    if dist.get_rank() == 0:
        if isinstance(value, torch.optim.SGD):
            value.step()
""",
        *ARMS,
    )
