"""Comparisons that the two-rank reading decides."""

from __future__ import annotations

import pytest
from spmdguard_lint.config import Config
from spmdguard_lint.engine import StandardInput, lint
from spmdguard_lint.values.evaluate import Valuation, truth
from spmdguard_lint.values.value import Value, choice, constant, expression, symbol

SPLIT = """
import torch.distributed as dist

def first(local_rank, work):
    if {others}:
        dist.barrier()
    work()
    if {main}:
        dist.barrier()
"""


@pytest.mark.parametrize(
    ("others", "main", "matched"),
    [
        ("local_rank not in [-1, 0]", "local_rank == 0", True),
        ("local_rank not in (-1, 0)", "local_rank in {0}", True),
        ("local_rank not in [0, 1]", "local_rank in [0, 1]", True),
        ("local_rank not in [-1, 0]", "local_rank in [0, 1]", False),
    ],
)
def test_membership_in_a_list_is_decided_rank_by_rank(others: str, main: str, matched: bool) -> None:
    """A barrier that is split over a list of ranks and the rest is matched; overlapping lists are not."""
    source = SPLIT.format(others=others, main=main)
    found = lint([], Config(), stdin=StandardInput(source.encode())).findings
    assert matched == ("SPG101" not in {finding.code for finding in found})


def test_choice_whose_alternatives_agree_at_a_rank() -> None:
    """Which of two tests counts is open; a rank that passes neither is decided, one that passes one of them is not."""
    first = expression("==", (Value("rank"), constant(0)))
    of_host = expression("==", (Value("local_rank"), constant(0)))
    either = choice(symbol("on each node"), of_host, first)
    at = [Valuation(rank, 4, 2) for rank in range(4)]
    decided = [truth(either, one) for one in at]
    assert decided == [True, False, None, False]
