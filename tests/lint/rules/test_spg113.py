"""SPG113: context managers that are called and not entered."""

from __future__ import annotations

from tests.lint.rules.marked import agree

HEAD = """
import contextlib
import time
from contextlib import contextmanager as manager
import deepspeed
import torch.distributed as dist
from accelerate import Accelerator

@contextlib.contextmanager
def main_first(rank):
    if rank != 0:
        dist.barrier()
    yield
    if rank == 0:
        dist.barrier()

@manager
def after_main(path):
    if dist.get_rank() != 0:
        while not path.exists():
            time.sleep(1)
    yield

@manager
def timed(name):
    start = time.time()
    yield
    print(name, time.time() - start)
"""


def test_managers_on_a_line_of_their_own() -> None:
    """Managers of the project, methods, and those of libraries that make others wait or change what is exchanged."""
    assert agree(
        HEAD
        + """
class Loader:
    @manager
    def in_turn(self):
        dist.barrier()
        yield

    def load(self):
        self.in_turn()  # SPG113

def prepare(rank, path):
    main_first(rank)  # SPG113
    after_main(path)  # SPG113
    dist.barrier()

def with_accelerate(model, loss):
    accelerator = Accelerator()
    accelerator.main_process_first()  # SPG113
    accelerator.no_sync(model)  # SPG113
    accelerator.backward(loss)

def edit(weight):
    deepspeed.zero.GatheredParameters([weight], modifier_rank=0)  # SPG113
    weight.zero_()
""",
        "SPG113",
    )


def test_managers_that_are_entered_or_matter_to_nobody() -> None:
    """Entered by a with statement, by an exit stack or by hand; returned; or a matter of this rank alone."""
    assert agree(
        HEAD
        + """
import torch

def prepare(rank, path, stack):
    with main_first(rank):
        print(path)
    stack.enter_context(main_first(rank))
    inner = main_first(rank)
    inner.__enter__()
    main_first(rank).__enter__()
    return main_first(rank)

def measure(x):
    timed("reduce")
    torch.set_grad_enabled(False)
    dist.all_reduce(x)
""",
        "SPG113",
    )


def test_a_name_that_nothing_enters_is_missed() -> None:
    """A known limit: the manager is given a name, and no with statement takes it."""
    assert agree(
        HEAD
        + """
def prepare(rank, path):
    waiting = main_first(rank)
    print(path)
""",
        "SPG113",
    )
