"""SPG107: one root for all of the groups that ranks hold."""

from __future__ import annotations

from tests.lint.rules.marked import agree

HEAD = """
import torch.distributed as dist

class Mesh:
    def __init__(self, tp):
        self.tp = tp
        self.length = dist.get_world_size() // tp
        for offset in range(tp):
            ranks = list(range(offset, dist.get_world_size(), tp))
            handle = dist.new_group(ranks)
            if dist.get_rank() in ranks:
                self.group = handle
                self.leader = ranks[0]
                self.last = ranks[-1]
"""


def test_index_within_the_group_as_root() -> None:
    """A group that a rank found itself in, with a root that is the same number on all ranks."""
    assert agree(
        HEAD
        + """
def last(x):
    mesh = Mesh(2)
    dist.broadcast(x, src=mesh.length - 1, group=mesh.group)  # SPG107

def first(x):
    mesh = Mesh(2)
    dist.reduce(x, dst=0, group=mesh.group)  # SPG107

def in_a_variable(x):
    for offset in range(2):
        ranks = list(range(offset, dist.get_world_size(), 2))
        handle = dist.new_group(ranks)
        if dist.get_rank() in ranks:
            mine = handle
    dist.broadcast(x, src=dist.get_world_size() // 2 - 1, group=mine)  # SPG107
""",
        "SPG107",
    )


def test_global_ranks_of_members() -> None:
    """Ranks kept from the list, translated ones, one group that only some ranks hold."""
    assert agree(
        HEAD
        + """
def kept(x):
    mesh = Mesh(2)
    dist.broadcast(x, src=mesh.leader, group=mesh.group)
    dist.broadcast(x, src=mesh.last, group=mesh.group)

def translated(x):
    mesh = Mesh(2)
    dist.broadcast(x, src=dist.get_global_rank(mesh.group, mesh.length - 1), group=mesh.group)
    dist.broadcast(x, group_src=mesh.length - 1, group=mesh.group)

class Some:
    def __init__(self):
        pair = dist.new_group([0, 1])
        if dist.get_rank() in (0, 1):
            self.pair = pair

def some(x):
    own = Some()
    if hasattr(own, "pair"):
        dist.broadcast(x, src=0, group=own.pair)
""",
        "SPG107",
    )
