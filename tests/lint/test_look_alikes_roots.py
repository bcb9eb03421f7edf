"""Roots that look like ranks within a group, and are global ranks as well."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lint.rules.marked import agree, in_files


def test_groups_of_the_first_ranks() -> None:
    """In the group of the first ranks, or of all, a rank has the number that it has in the world."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        def first_ranks(tensor, n, root):
            group = dist.new_group(list(range(n)))
            if dist.get_rank(group) == root:
                tensor.fill_(1)
            dist.broadcast(tensor, src=root, group=group)

        def of_world(tensor, context, root):
            if dist.get_rank(context.world_pg) == root:
                tensor.fill_(1)
            dist.broadcast(tensor, src=root, group=context.world_pg)

        def of_part(tensor, context, root):
            if dist.get_rank(context.tp_pg) == root:
                tensor.fill_(1)
            dist.broadcast(tensor, src=root, group=context.tp_pg)  # SPG107

        def others(tensor, n, root):
            group = dist.new_group(list(range(2, n)))
            if dist.get_rank(group) == root:
                tensor.fill_(1)
            dist.broadcast(tensor, src=root, group=group)  # SPG107

        def outside(tensor):
            group = dist.new_group(list(range(2)))
            if dist.get_rank() < 2:
                dist.broadcast(tensor, src=3, group=group)  # SPG107
        """,
        "SPG107",
    )


def test_ranks_translated_by_a_function_of_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``get_global_rank(group, rank)`` is not this rank's own number, be it that the project wraps it unseen."""
    monkeypatch.chdir(tmp_path)
    files = {
        "wrapping.py": """
from functools import lru_cache

import torch.distributed as dist
import unknown


@lru_cache
def get_global_rank(group, group_rank):
    return unknown.wrapped(dist.get_global_rank(group, group_rank))


@lru_cache
def get_rank(group=None):
    return unknown.wrapped(dist.get_rank(group))
""",
        "use.py": """
import torch.distributed as dist
from wrapping import get_global_rank, get_rank


def share(tensor, group):
    dist.broadcast(tensor, src=get_global_rank(group=group, group_rank=0), group=group)


def share_from_all(tensor):
    dist.broadcast(tensor, src=get_rank())
""",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert in_files(files, "SPG107") == [("use.py", 11, "SPG107")]
