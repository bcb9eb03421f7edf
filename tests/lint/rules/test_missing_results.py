"""What a function under ``@rank_local`` gives where it failed: its default, on that rank alone."""

from __future__ import annotations

import pytest

from tests.lint.rules.marked import agree

PROGRAM = """
    import json

    import torch
    import torch.distributed as dist
    from spmdguard import collective, rank_local, sync_should_stop

    DECORATOR
    def score(path, best):
        with open(path) as file:
            return json.load(file)["score"] < best

    @rank_local
    def rows(path):
        with open(path) as file:
            return len(file.readlines())

    @rank_local
    def bigger(step):
        return step > 10

    def exchange(x):
        dist.all_reduce(x)

    def main(path, steps, x):
        for step in range(steps):
            result = score(f"{path}-{dist.get_rank()}", 0.5)
            TEST
                exchange(x)CODE
            if sync_should_stop():
                break
"""


@pytest.mark.parametrize(
    ("decorator", "test"),
    [
        ("@rank_local", "if result is not None:"),
        ("@rank_local", "if result is None:\n                pass\n            else:"),
        ("@rank_local", "n = rows(path)\n            if n is not None:"),
    ],
)
def test_decides_about_a_collective(decorator: str, test: str) -> None:
    """The rank whose work failed has None, or the default, and leaves out what the others call."""
    source = PROGRAM.replace("DECORATOR", decorator).replace("TEST", test)
    assert agree(source.replace("CODE", "  # SPG202"), "SPG202")


@pytest.mark.parametrize(
    ("decorator", "test"),
    [
        (
            "@rank_local",
            "have = torch.tensor([int(result is not None)])\n            dist.all_reduce(have)\n"
            "            if have.item() == dist.get_world_size():",
        ),
        ("@rank_local", "late = bigger(step)\n            if late is not None:"),
        ("@rank_local", "if step % 2 == 0:"),
    ],
)
def test_decides_about_nothing(decorator: str, test: str) -> None:
    """The ranks exchange whether they have a result, the work touches no files, or something else decides."""
    source = PROGRAM.replace("DECORATOR", decorator).replace("TEST", test)
    assert agree(source.replace("CODE", ""), "SPG202")
