"""Comparisons that the two-rank reading decides."""

from __future__ import annotations

import pytest
from spmdguard_lint.config import Config
from spmdguard_lint.engine import StandardInput, lint
from spmdguard_lint.interpreter.comparisons import compare
from spmdguard_lint.interpreter.expressions import tuple_value
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


def test_constants_are_looked_up_in_tuples_of_constants() -> None:
    """So a branch on them is decided where it stands, in each call."""
    numbers = tuple_value([constant(-1), constant(0)])
    assert compare("not in", constant(-1), numbers).data[0] is False
    assert compare("in", constant(0), numbers).data[0] is True
    assert compare("in", constant(3), numbers).data[0] is False
    assert compare("in", symbol("n"), numbers).tag == "expr"


def test_a_rank_that_two_conditions_leave_together_is_looked_at() -> None:
    """Neither 0 to 3 comes to the barrier, where each condition alone says all about itself; 4 does, and waits."""
    source = """
import torch.distributed as dist

def main():
    rank = dist.get_rank()
    if rank == 0 or rank == 2:
        pass
    else:
        if rank % 2:
            raise ValueError("odd")
        dist.barrier()
"""
    findings = lint([], Config(), stdin=StandardInput(source.encode())).findings
    assert ("SPG101", 11) in {(finding.code, finding.site.start.row) for finding in findings}


def test_what_a_loop_has_left_stays_this_ranks_own_behind_a_branch_on_the_rank() -> None:
    """One rank asks for more; the answers of the others are still their own, and differ."""
    source = """
import torch.distributed as dist

def main(x):
    rank = dist.get_rank()
    for k in range(2):
        if k == rank:
            hit = True
            break
    else:
        hit = False
    if rank == 1:
        hit = hit and True
        dist.all_reduce(x)
    else:
        dist.all_reduce(x)
    if not hit:
        raise ValueError("gone")
    dist.all_reduce(x)
"""
    config = Config(min_certainty="possible")
    findings = lint([], config, stdin=StandardInput(source.encode())).findings
    assert ("SPG205", 18) in {(finding.code, finding.site.start.row) for finding in findings}
