"""A function that several callers use rightly and one wrongly: the wrong use is reported, wherever it stands."""

from __future__ import annotations

import pytest

from tests.lint.rules.marked import expected, reported

GOOD = "    fenced(rank, nothing)\n"
BAD = "    fenced(rank, reduces)\n"
SOURCE = """
import torch
import torch.distributed as dist

def reduces():
    dist.all_reduce(torch.zeros(1))

def nothing():
    pass

def fenced(rank, work):
    if rank == 0:
        dist.barrier()  # SPG101
    work()
    if rank != 0:
        dist.barrier()  # SPG101

def main():
    rank = dist.get_rank()
"""


@pytest.mark.parametrize("before", [0, 1, 6])
@pytest.mark.parametrize("after", [0, 1, 6])
def test_one_wrong_use_among_right_ones(before: int, after: int) -> None:
    """What is matched with other arguments says nothing about this call."""
    source = SOURCE + GOOD * before + BAD + GOOD * after + "\nmain()\n"
    assert expected(source) == reported(source, "SPG101")


def test_right_uses_are_silent() -> None:
    """A split barrier around local work parts nobody, however often it is used."""
    assert reported(SOURCE + GOOD * 7 + "\nmain()\n", "SPG101") == []
