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

def all_or_all(x):
    group = dist.new_group() if dist.get_rank() else dist.group.WORLD
    dist.broadcast(x, src=0, group=group)

def some(x):
    own = Some()
    if hasattr(own, "pair"):
        dist.broadcast(x, src=0, group=own.pair)
""",
        "SPG107",
    )


def test_one_group_of_ranks_that_are_not_written_down() -> None:
    """One dimension of several, by name and by number; a mesh of one dimension, or of sizes of one, is the world."""
    assert agree(
        """
        import torch.distributed as dist

        class Ends:
            def __init__(self):
                self.rank, self.last = dist.get_rank(), dist.get_world_size() - 1
                ends = sorted({0, self.last})
                group = dist.new_group(ends)
                self.group = group if self.rank in ends and len(ends) == 2 else None

        def copy(x, ends):
            if ends.group is None:
                return
            dist.broadcast(x, src=0, group=ends.group)

        class Pairs:
            def __init__(self):
                self.group = None
                for first in range(0, dist.get_world_size(), 2):
                    ranks = sorted({first, first + 1})
                    group = dist.new_group(ranks)
                    if dist.get_rank() in ranks:
                        self.group = group

        def among_pairs(x, pairs):
            dist.broadcast(x, src=0, group=pairs.group)  # SPG107

        def main(x):
            copy(x, Ends())
            among_pairs(x, Pairs())
        """,
        "SPG107",
    )


def test_groups_of_a_mesh() -> None:
    """One dimension of several, by name and by number; a mesh of one dimension, or with sizes of one, is the world."""
    assert agree(
        """
        import torch
        import torch.distributed as dist
        from torch.distributed.device_mesh import init_device_mesh


        class Worker:
            def __init__(self, tp):
                world = dist.get_world_size()
                self.mesh = init_device_mesh("cuda", (world // tp, tp), mesh_dim_names=("dp", "tp"))
                self.tp_mesh = self.mesh["tp"]
                self.flat = init_device_mesh("cuda", (world,), mesh_dim_names=("dp",))
                self.one = init_device_mesh("cuda", mesh_shape=(1, world), mesh_dim_names=("dp", "tp"))

            def one_number(self, x):
                dist.broadcast(x, src=0, group=self.mesh.get_group("tp"))  # SPG107
                dist.broadcast(x, 0, group=self.tp_mesh.get_group())  # SPG107
                dist.reduce(x, dst=0, group=self.mesh.get_group(mesh_dim=1))  # SPG107
                dist.broadcast_object_list([x], src=0, group=self.mesh["dp"].get_group())  # SPG107

            def members(self, x):
                dist.broadcast(x, group_src=0, group=self.mesh.get_group("tp"))
                dist.broadcast(x, src=dist.get_global_rank(self.tp_mesh.get_group(), 0), group=self.tp_mesh.get_group())
                dist.broadcast(x, src=0, group=self.flat.get_group())
                dist.broadcast(x, src=0, group=self.flat["dp"].get_group())
                dist.broadcast(x, src=0, group=self.one["tp"].get_group())
                dist.broadcast(x, src=dist.get_rank() // 2 * 2, group=self.tp_mesh.get_group())
                if self.mesh["dp"].get_local_rank() == 0:
                    dist.broadcast(x, src=0, group=self.tp_mesh.get_group())
                if dist.get_rank() < 2:
                    dist.broadcast(x, src=0, group=self.tp_mesh.get_group())


        def function(x, tp):
            mesh = init_device_mesh("cuda", mesh_shape=(2, dist.get_world_size() // 2))
            group = mesh.get_group(1)
            if x is not None:
                dist.gather(x, [x, x] if dist.get_rank(group) == 0 else None, dst=0, group=group)  # SPG107
        """,
        "SPG107",
    )
