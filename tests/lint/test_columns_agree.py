"""The headline of an exit and the two columns below it tell the same story."""

from __future__ import annotations

import pytest

from tests.lint.fixes.walking import Subject

LOOP = """\
import time
import torch.distributed as dist


def train(model, loader, limit):
    for batch in loader:
        dist.all_reduce(batch)
{body}
        dist.barrier()
"""
CLOCK, RANK = "time.time() > limit", "dist.get_rank() == 0"
# the body with its condition, and the row of the jump that is shown where the rank decides
SHAPES = {
    "in the first arm": ("if {}:\n    continue", 9),
    "in the second arm": ("if {}:\n    print(1)\nelse:\n    continue", 11),
    "below a test in the first arm": ("if {}:\n    if model.ready:\n        continue\n    print(1)", 10),
    "below a test in the second arm": (
        "if {}:\n    print(1)\nelse:\n    if model.ready:\n        continue",
        12,
    ),
    "in both arms, one of them to the end": (
        "if {}:\n    if model.ready:\n        continue\n    print(1)\nelse:\n    continue",
        13,
    ),
    "in both arms, the first to the end": (
        "if {}:\n    continue\nelse:\n    if model.ready:\n        continue",
        9,
    ),
}


@pytest.mark.parametrize(("code", "condition"), [("SPG302", CLOCK), ("SPG102", RANK)])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_diverging_column_is_the_way_of_the_jump(code: str, condition: str, shape: str) -> None:
    """The rank that continues comes to the next round, the others to the barrier, in the message and the columns."""
    body, row = SHAPES[shape]
    if code == "SPG302":
        row = 8  # the branch itself
    lines = "".join(f"        {line}\n" for line in body.format(condition).splitlines()).rstrip("\n")
    text = LOOP.format(body=lines)
    found = [f for f in Subject("columns", text=text).lint().findings if f.code == code]
    barrier = f"dist.barrier()  (line {len(text.splitlines())})"
    assert [(f.site.start.row, f.diverging, f.others) for f in found] == [
        (row, ("next round of the loop",), (barrier, "next round of the loop"))
    ]
    assert found[0].message.startswith("`continue` leaves where ")
    assert found[0].message.endswith("while the other ranks go on to `dist.barrier()`")
