"""A function that several callers use rightly and one wrongly: the wrong use is reported, wherever it stands."""

from __future__ import annotations

import pytest

from tests.lint.rules.marked import agree, expected, reported

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


def test_the_same_call_in_an_arm_and_behind_it() -> None:
    """Calls with the same arguments share what was read of them: one in an arm says nothing of one behind it."""
    assert agree(
        """
        import torch.distributed as dist

        class Runner:
            def __init__(self, rank):
                self.rank = rank

            def run(self):
                if self.rank == 0:
                    dist.barrier()  # SPG101

            def rounds(self):
                for _ in range(self.rank * 2):
                    dist.barrier()  # SPG401

            def joined(self):
                if self.rank == 0:
                    dist.barrier()

        def again():
            runner = Runner(dist.get_rank())
            if runner.rank != 0:
                runner.run()
            runner.run()

        def matched():
            runner = Runner(dist.get_rank())
            match (runner.rank, dist.get_world_size()):
                case [0, _]:
                    runner.rounds()
            runner.rounds()

        def on_both_sides():
            runner = Runner(dist.get_rank())
            if runner.rank != 0:
                runner.joined()
                dist.barrier()
            runner.joined()

        again()
        matched()
        on_both_sides()
        """,
        "SPG101",
        "SPG401",
    )
