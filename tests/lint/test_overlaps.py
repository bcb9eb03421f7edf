"""One report for one defect."""

from __future__ import annotations

import textwrap

from spmdguard_lint.config import Config
from spmdguard_lint.engine import StandardInput, lint

from tests.lint.rules.marked import agree, reported

SOURCE = """
import os

import torch.distributed as dist

def main(path, batches):
    if dist.get_rank() % 2 == 0:
        if os.path.exists(path):
            return 1
    dist.barrier()
    error = None
    for batch in batches:
        try:
            batch.read()
        except OSError as caught:
            error = caught
        dist.all_reduce(batch)
    if error is not None:
        raise error
    dist.barrier()
    return 0
"""


def test_the_more_specific_rule_speaks() -> None:
    """A rank that leaves by what it sees of the files, and a kept error that is raised: one report each."""
    assert reported(SOURCE, "SPG102", "SPG304", "SPG205", "SPG601") == [(9, "SPG102"), (19, "SPG601")]


def test_what_is_not_selected_overrules_nothing() -> None:
    """The more general rule speaks where it alone was asked for."""
    assert reported(SOURCE, "SPG304", "SPG205") == [(8, "SPG304"), (19, "SPG205")]


def test_a_suppressed_report_does_not_come_back_under_another_code() -> None:
    """A comment that silences the specific report silences the defect."""
    content = textwrap.dedent(SOURCE).replace("return 1", "return 1  # noqa: SPG102").encode()
    result = lint([], Config(select=("SPG102", "SPG304")), stdin=StandardInput(content, "snippet.py"))
    assert [finding.code for finding in result.findings] == []


def test_two_defects_at_one_place_are_two_reports() -> None:
    """Rules that speak of different things are not silenced by one another."""
    assert agree(
        """
        import torch.distributed as dist

        def save(state, path):
            if dist.get_rank() == 0:
                dist.all_reduce(state, async_op=True)  # SPG101 # SPG603
        """,
        "SPG101",
        "SPG603",
    )
