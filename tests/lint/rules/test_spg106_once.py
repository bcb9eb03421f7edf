"""SPG106: groups that a helper makes at its first call alone."""

from __future__ import annotations

import pytest

from tests.lint.rules.marked import agree

HELPERS = {
    "attribute of a function": """
        def group():
            if dist.is_initialized():
                if not hasattr(group, "_made"):
                    group._made = dist.new_group()
                return group._made
    """,
    "global": """
        MADE = None

        def group():
            global MADE
            if MADE is None:
                MADE = dist.new_group()
            return MADE
    """,
    "dictionary": """
        MADE = {}

        def group():
            if "all" not in MADE:
                MADE["all"] = dist.new_group()
            return MADE["all"]
    """,
    "list that is empty": """
        class Kept:
            made = None

        def group():
            if not Kept.made and dist.is_initialized():
                Kept.made = dist.new_group()
            return Kept.made
    """,
}
USES = """
        import glob
        import os
        import torch.distributed as dist

        def sizes(x, path):
            if os.path.exists(path):
                print(dist.get_world_size(group()))

        def leaves(x, state):
            if glob.glob("*.pt"):
                return None
            return group()

        def by_rank(x):
            if dist.get_rank() == 0:
                print(dist.get_world_size(group()))  # {rank}
"""


@pytest.mark.parametrize("name", HELPERS)
def test_group_that_is_made_once(name: str) -> None:
    """Under a condition of data, an earlier call has as a rule made it; where the rank decides, none may have."""
    known = (
        "nothing: what a global holds when a function is read alone is not known"
        if name == "global"
        else "SPG106"
    )
    assert agree(USES.format(rank=known) + HELPERS[name], "SPG106", "SPG102", "SPG304")


def test_group_that_is_made_each_time() -> None:
    """A helper that keeps nothing, or asks for something else, makes a group at each call."""
    assert agree(
        """
        import os
        import torch.distributed as dist

        STARTED = None
        MADE = None

        def anew():
            return dist.new_group()

        def other():
            global MADE
            if STARTED is None:
                MADE = dist.new_group()
            return MADE

        def sizes(x, path):
            if os.path.exists(path):
                print(dist.get_world_size(anew()))  # SPG304

        def others(x, path):
            if os.path.exists(path):
                print(dist.get_world_size(other()))  # SPG304
        """,
        "SPG304",
    )
