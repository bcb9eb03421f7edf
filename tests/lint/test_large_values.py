"""Values made of many parts: what the rank decides about them is kept when their parts are not."""

from __future__ import annotations

import pytest

from tests.lint.rules.marked import agree

RUN = """
import os
import torch.distributed as dist

RANK = int(os.getenv("RANK", "-1"))

def train(opt, stopper, validate, epochs):
    for epoch in range(epochs):
        {first}
        if RANK != -1:
            told = [stop if RANK == 0 else None]
            dist.broadcast_object_list(told, 0)
            {second}
        if stop:
            break{mark}
"""
FOUND = "stop = stopper(validate({}), epoch)"
NUMBERS = (1, 4, 6, 7, 8, 9, 12)


def first_of(number: int) -> str:
    """An answer that so many options lead to."""
    return FOUND.format(", ".join(f"p{i}=opt.a{i} + opt.b{i}" for i in range(number)))


@pytest.mark.parametrize("number", NUMBERS)
def test_a_large_answer_that_one_rank_tells(number: int) -> None:
    """What rank 0 has found and told the others is the same on all ranks, however it was found."""
    second = "if RANK != 0:\n                stop = told[0]"
    assert agree(RUN.format(first=first_of(number), second=second, mark=""), "SPG102")


@pytest.mark.parametrize("number", NUMBERS)
def test_a_large_answer_that_not_all_take(number: int) -> None:
    """Where another rank than those that keep their own answer has told it, ranks part ways."""
    second = "if RANK > 1:\n                stop = told[0]"
    mark = "  # SPG102"
    assert agree(RUN.format(first=first_of(number), second=second, mark=mark), "SPG102")
