"""SPG106: groups made or used by the wrong ranks."""

from __future__ import annotations

from tests.lint.rules.marked import agree

GROUPS = ("SPG101", "SPG102", "SPG103", "SPG106", "SPG107")


def test_group_made_by_some() -> None:
    """Making a group is everybody's call, members or not."""
    assert agree(
        """
        import torch.distributed as dist

        def leaders(members):
            if dist.get_rank() in members:
                return dist.new_group(members)  # SPG106

        def per_node(nodes):
            for ranks in nodes:
                if dist.get_rank() in ranks:
                    dist.new_group(ranks)  # SPG106
        """,
        *GROUPS,
    )


def test_group_of_other_ranks_on_each() -> None:
    """The list of ranks is the same on every rank, or the groups are not."""
    assert agree(
        """
        import torch.distributed as dist

        def pair():
            rank = dist.get_rank()
            return dist.new_group([rank, rank + 1])  # SPG106

        def half():
            rank, world = dist.get_rank(), dist.get_world_size()
            ranks = list(range(0, world // 2)) if rank < world // 2 else list(range(world // 2, world))
            return dist.new_group(ranks)  # SPG106
        """,
        *GROUPS,
    )


def test_not_all_members_call() -> None:
    """A member that stays out leaves the other members waiting."""
    assert agree(
        """
        import torch.distributed as dist

        def exchange(x):
            group = dist.new_group([0, 1])
            if dist.get_rank() == 0:
                dist.all_reduce(x, group=group)  # SPG106

        def leaves(x):
            group = dist.new_group([0, 1])
            if dist.get_rank() != 1:
                return  # SPG106
            dist.all_reduce(x, group=group)
        """,
        *GROUPS,
    )


def test_right_groups_are_silent() -> None:
    """All ranks make all groups; members use their own."""
    assert agree(
        """
        import torch.distributed as dist

        def nodes(per_node):
            rank, world = dist.get_rank(), dist.get_world_size()
            mine = None
            for first in range(0, world, per_node):
                ranks = list(range(first, first + per_node))
                group = dist.new_group(ranks)
                if rank in ranks:
                    mine = group
            return mine

        def members(x):
            group = dist.new_group([0, 1])
            if dist.get_rank() in (0, 1):
                dist.all_reduce(x, group=group)

        def below(x):
            group = dist.new_group([0, 1])
            if dist.get_rank() < 2:
                dist.all_reduce(x, group=group)

        def alone():
            return dist.new_group([dist.get_rank()])

        def local_synchronisation(members):
            if dist.get_rank() in members:
                return dist.new_group(members, use_local_synchronization=True)
        """,
        *GROUPS,
    )


def test_known_miss_members_from_elsewhere() -> None:
    """Where the members are not known, a condition on the rank is taken for the membership."""
    assert agree(
        """
        import torch.distributed as dist

        def exchange(x, members):
            group = dist.new_group(members)
            if dist.get_rank() == 0:
                dist.all_reduce(x, group=group)
        """,
        *GROUPS,
    )


def test_members_by_a_comprehension() -> None:
    """The members of a group that a comprehension picks are known for each world."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        def some(rank, value):
            evens = dist.new_group([r for r in range(dist.get_world_size()) if r % 2 == 0])
            if dist.get_rank() == 0:
                dist.all_reduce(value, group=evens)  # SPG106

        def members(rank, value):
            evens = dist.new_group([r for r in range(dist.get_world_size()) if r % 2 == 0])
            if dist.get_rank() % 2 == 0:
                dist.all_reduce(value, group=evens)

        def rounds(value):
            evens = dist.new_group([r for r in range(dist.get_world_size()) if r % 2 == 0])
            for _ in range(dist.get_rank()):
                dist.all_reduce(value, group=evens)  # SPG401

        def each_its_own():
            dist.new_group([r for r in range(dist.get_world_size()) if r // 2 == dist.get_rank() // 2])  # SPG106
        """,
        "SPG106",
        "SPG401",
    )


def test_groups_of_others() -> None:
    """Only ranks outside a group reach a call on it; calls by members, guarded or not, are right."""
    assert agree(
        """
        import torch.distributed as dist

        def exchange(x):
            first, second = dist.new_group([0, 1]), dist.new_group([2, 3])
            if dist.get_rank() < 2:
                dist.broadcast(x, 2, group=second)  # SPG106
            else:
                dist.all_reduce(x, group=second)

        class Roles:
            def __init__(self):
                self.rank = dist.get_rank()
                self.learners = dist.new_group([2, 3])

            @property
            def acts(self):
                return self.rank < 2

        def step(x):
            roles = Roles()
            if roles.acts:
                dist.all_reduce(x, group=roles.learners)  # SPG106

        def right(x):
            first, second = dist.new_group([0, 1]), dist.new_group([2, 3])
            if dist.get_rank() < 2:
                dist.all_reduce(x, group=first)
            else:
                dist.all_reduce(x, group=second)
            dist.all_reduce(x, group=first if dist.get_rank() in (0, 1) else second)
        """,
        "SPG106",
    )


def test_groups_of_own_ranks() -> None:
    """Each rank makes the group of its own ranks only: by arithmetic, a search, a table, its host, or chance."""
    assert agree(
        """
        import random
        import socket

        import torch.distributed as dist

        def helper(rank):
            start = rank // 2 * 2
            return dist.new_group(list(range(start, start + 2)))  # SPG106

        def use1():
            g = helper(dist.get_rank())
            dist.barrier(g)

        def comp():
            rank, world = dist.get_rank(), dist.get_world_size()
            return dist.new_group([r for r in range(world) if r % 2 == rank % 2])  # SPG106

        def search(order):
            me = dist.get_rank()
            for pair in order:
                if me in pair:
                    return dist.new_group(pair)  # SPG106

        def search2(order):
            me = dist.get_rank()
            mine = next(pair for pair in order if me in pair)
            return dist.new_group(mine)  # SPG106

        def search3(order):
            me = dist.get_rank()
            mine = [pair for pair in order if me in pair][0]
            return dist.new_group(mine)  # SPG106

        def table(groups):
            return dist.new_group(groups[dist.get_rank()])  # SPG106

        def table2():
            mine = {0: [0, 1], 1: [0, 1], 2: [2, 3], 3: [2, 3]}[dist.get_rank()]
            return dist.new_group(mine)  # SPG106

        def neighbours():
            me, world = dist.get_rank(), dist.get_world_size()
            left = (me - 1) % world
            return dist.new_group(sorted({left, me}))  # SPG106

        class Pairs:
            def __init__(self, size):
                self.rank = dist.get_rank()
                self.size = size
            def members(self):
                first = self.rank - self.rank % self.size
                return [first + i for i in range(self.size)]
            def make(self):
                return dist.new_group(ranks=self.members())  # SPG106

        def hosts(names):
            mine = [r for r, n in enumerate(names) if n == socket.gethostname()]
            return dist.new_group(mine)  # SPG106

        def drawn():
            return dist.new_group(random.sample(range(8), 4))  # SPG106
        """,
        "SPG106",
    )


def test_groups_that_all_make() -> None:
    """All groups in the same order, by ranks that all know; members alone where they may; a group of one."""
    assert agree(
        """
        import random
        import socket

        import torch.distributed as dist

        def ok(order, size):
            me = dist.get_rank()
            mine = None
            for start in range(0, len(order), size):
                members = sorted(order[start:start + size])
                group = dist.new_group(members)
                if me in members:
                    mine = group
            return mine

        def ok_local(rank):
            return dist.new_group([rank // 2 * 2, rank // 2 * 2 + 1], use_local_synchronization=True)

        def ok_seeded():
            rng = random.Random(7)
            order = list(range(8))
            rng.shuffle(order)
            return dist.new_group(order[:4])

        def ok_all(hosts):
            names = [None] * dist.get_world_size()
            dist.all_gather_object(names, socket.gethostname())
            mine = None
            for name in sorted(set(names)):
                ranks = [r for r, n in enumerate(names) if n == name]
                group = dist.new_group(ranks)
                if name == socket.gethostname():
                    mine = group
            return mine

        def ok_alone():
            return dist.new_group([dist.get_rank()])
        """,
        "SPG106",
    )


def test_members_disagree_whatever_else_the_condition_asks() -> None:
    """Where the rest of a condition says nothing, its part about the rank decides among the members."""
    assert agree(
        """
        import torch.distributed as dist

        def evens():
            return dist.new_group([r for r in range(dist.get_world_size()) if r % 2 == 0])

        def either(count):
            group = evens()
            if dist.get_rank() != 0 or count > 1:
                dist.barrier(group=group)  # SPG106

        def both(enabled):
            group = evens()
            if enabled and dist.get_rank() == 0:
                dist.barrier(group=group)  # SPG106

        def members_or_all(everybody):
            group = dist.new_group([0, 1])
            if dist.get_rank() < 2 or everybody:
                dist.barrier(group=group)

        def members_if_enabled(enabled):
            group = evens()
            if enabled and dist.get_rank() % 2 == 0:
                dist.barrier(group=group)
        """,
        "SPG106",
    )
