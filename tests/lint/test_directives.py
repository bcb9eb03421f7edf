"""Comments that tell the analysis a fact: ``# spmdguard: uniform`` and ``# spmdguard: protocol``."""

from __future__ import annotations

import pytest
from spmdguard_lint.config import Config
from spmdguard_lint.engine import StandardInput, lint

HEAD = "import torch.distributed as dist\n\ndef main(rows):\n"


def codes(body: str) -> list[tuple[int, str]]:
    """The rows of the body, from 1, and codes of what is found."""
    given = StandardInput((HEAD + body).encode())
    return [(f.site.start.row - 3, f.code) for f in lint([], Config(), stdin=given).findings]


@pytest.mark.parametrize(
    ("comment", "expected"),
    [("", [(3, "SPG101")]), ("  # spmdguard: uniform", [])],
)
def test_uniform_vouches_for_the_name_that_is_assigned(comment: str, expected: list[tuple[int, str]]) -> None:
    """A name assigned on such a line is the same on every rank from there on."""
    body = f"    first = dist.get_rank() == 0{comment}\n    if first:\n        dist.barrier()\n"
    assert expected == codes(body)


@pytest.mark.parametrize(
    ("comment", "expected"),
    [("", [(2, "SPG101")]), ("  # spmdguard: protocol", [])],
)
def test_protocol_vouches_for_the_arms_of_a_branch(comment: str, expected: list[tuple[int, str]]) -> None:
    """What the arms of such an ``if`` do is taken to be matched by what other ranks do."""
    assert expected == codes(f"    if dist.get_rank() == 0:{comment}\n        dist.barrier()\n")


def test_protocol_holds_for_its_own_branch_only() -> None:
    """A branch inside, and a value set inside, are judged as before."""
    body = (
        "    last = False\n"
        "    if dist.get_rank() == 0:  # spmdguard: protocol\n"
        "        last = True\n"
        "        if rows[dist.get_rank()]:\n"
        "            dist.barrier()\n"
        "    if last:\n"
        "        dist.barrier()\n"
    )
    assert codes(body) == [(5, "SPG101"), (7, "SPG101")]
