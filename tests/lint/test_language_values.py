"""Values of the language's own: enums, unpacked keywords, defaults of fields, modes of modules, agreed limits."""

from __future__ import annotations

from tests.lint.rules.marked import agree

PARTING = ("SPG101", "SPG102", "SPG103", "SPG104", "SPG105", "SPG205", "SPG401", "SPG402")


def test_members_of_enums_are_told_apart() -> None:
    """A member is a constant of its own, whatever ``auto()`` gives it; its name, value and properties are followed."""
    assert agree(
        """
        import torch.distributed as dist
        from enum import Enum, IntEnum, auto

        class Role(Enum):
            CHIEF = auto()
            HELPER = auto()

            @classmethod
            def of(cls, rank):
                return cls.CHIEF if rank == 0 else cls.HELPER

            @property
            def leads(self):
                return self is Role.CHIEF

        class Kind(Enum):
            A = "a"
            B = "b"

        class Level(IntEnum):
            LOW = 0
            HIGH = 1

        def asked():
            role = Role.CHIEF if dist.get_rank() == 0 else Role.HELPER
            if role is Role.CHIEF:
                dist.barrier()  # SPG101

        def matched(x):
            match Role.of(dist.get_rank()):
                case Role.CHIEF:
                    dist.barrier()  # SPG103
                case Role.HELPER:
                    dist.all_reduce(x)  # SPG101

        def by_property():
            role = Role.of(dist.get_rank())
            if role.leads:
                dist.barrier()  # SPG101

        def by_value():
            role = Role.of(dist.get_rank())
            if role.value == 1:
                dist.barrier()  # SPG101

        def from_value():
            kind = Kind("a" if dist.get_rank() == 0 else "b")
            if kind is Kind.A:
                dist.barrier()  # SPG101

        def by_number():
            level = Level.HIGH if dist.get_rank() else Level.LOW
            if level > 0:
                dist.barrier()  # SPG101

        def known():
            role = Role.CHIEF
            if role is Role.HELPER:
                if dist.get_rank() == 0:
                    dist.barrier()
            if Kind("b") is Kind.A:
                if dist.get_rank() == 0:
                    dist.barrier()

        def common(role):
            if role is Role.CHIEF:
                dist.barrier()
        """,
        *PARTING,
    )


def test_keywords_that_are_unpacked() -> None:
    """``**options`` hands on what a dict holds, key by key."""
    assert agree(
        """
        import torch.distributed as dist

        def emit(*parts, fence=False, **extra):
            if fence:
                dist.barrier()  # SPG101

        def report(*parts, fence=False, **extra):
            if fence:
                dist.barrier()

        def by_rank():
            special = {"fence": dist.get_rank() == 0, "epoch": 2}
            emit("loss", **special)

        def beside_the_rank():
            special = {"fence": True, "rank": dist.get_rank()}
            report("loss", **special)

        def not_given(options):
            report("loss", **{"rank": dist.get_rank()})
        """,
        *PARTING,
    )


def test_defaults_of_fields() -> None:
    """``field(default_factory=f)`` calls the factory, in the file of the class; ``field(default=v)`` is the value."""
    assert agree(
        """
        from dataclasses import dataclass, field
        import torch.distributed as dist

        @dataclass
        class Clock:
            period: int = 1
            offset: int = field(default_factory=dist.get_rank)
            size: int = field(default_factory=dist.get_world_size)
            chosen: bool = field(default=True, repr=False)

        def decide(default):
            return default or dist.get_rank() == 0

        @dataclass
        class Choice:
            leads: bool = decide(default=False)

        def by_another_call():
            if Choice().leads:
                dist.barrier()  # SPG101

        def by_offset():
            clock = Clock()
            if clock.offset > 0:
                dist.barrier()  # SPG101

        def by_size():
            clock = Clock()
            if clock.size > 4 or not clock.chosen:
                dist.barrier()

        def given():
            clock = Clock(offset=0)
            if clock.offset > 0:
                dist.barrier()
        """,
        *PARTING,
    )


def test_an_item_of_a_list_of_equals() -> None:
    """Whichever item of ``[True] * n`` a rank takes, it is the same, until one is changed."""
    assert agree(
        """
        import torch.distributed as dist

        def equal():
            active = [True] * dist.get_world_size()
            if active[dist.get_rank()]:
                dist.barrier()

        def changed(k):
            active = [True] * dist.get_world_size()
            active[k] = False
            if active[dist.get_rank()]:
                dist.barrier()  # SPG101

        def written():
            active = [True, False]
            if active[dist.get_rank() % 2]:
                dist.barrier()  # SPG101
        """,
        *PARTING,
    )


def test_modes_of_modules() -> None:
    """``model.eval()`` sets ``training`` of the model and of what it holds; ``train()`` sets it back."""
    assert agree(
        """
        import torch.distributed as dist
        from torch import nn

        class Norm(nn.Module):
            def forward(self, x):
                if self.training:
                    dist.all_reduce(x)
                return x

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.norm = Norm()
            def forward(self, x):
                return self.norm(x)

        def evaluates(x):
            net = Net()
            net(x)
            net.eval()
            if dist.get_rank() == 0:
                net(x)

        def trains_again(x):
            net = Net()
            net.eval()
            net(x)
            net.train()
            if dist.get_rank() == 0:
                net(x)  # SPG104

        def as_it_was_made(x):
            net = Net()
            if dist.get_rank() == 0:
                net(x)  # SPG104
        """,
        *PARTING,
    )


def test_rounds_up_to_an_agreed_limit() -> None:
    """A loop over own items that ends at a number told by all ranks has as many rounds on each."""
    assert agree(
        """
        from itertools import islice
        import torch
        import torch.distributed as dist
        from torch.utils.data import DataLoader

        def least(loader):
            n = torch.tensor([len(loader)])
            dist.all_reduce(n, op=dist.ReduceOp.MIN)
            return int(n)

        def own(data):
            return DataLoader(data[dist.get_rank()], batch_size=4)

        def sliced(data):
            loader = own(data)
            for x in islice(loader, least(loader)):
                dist.all_reduce(x)

        def zipped(data):
            loader = own(data)
            for _, x in zip(range(least(loader)), loader):
                dist.all_reduce(x)

        def broken_off(data):
            loader = own(data)
            steps = least(loader)
            for i, x in enumerate(loader):
                if i >= steps:
                    break
                dist.all_reduce(x)

        def gathered(data):
            items = [0] * dist.get_rank()
            counts = [None] * dist.get_world_size()
            dist.all_gather_object(counts, len(items))
            for _, x in zip(range(min(counts)), items):
                dist.all_reduce(x)

        def by_a_constant(data):
            for x in islice(own(data), 100):
                dist.all_reduce(x)  # SPG401

        def by_the_greatest(data):
            items = [0] * dist.get_rank()
            n = torch.tensor([len(items)])
            dist.all_reduce(n, op=dist.ReduceOp.MAX)
            for _, x in zip(range(int(n)), items):
                dist.all_reduce(x)  # SPG401
        """,
        *PARTING,
    )


def test_names_and_items_under_a_question() -> None:
    """A table asked with a question, an attribute by a name that the rank chooses, quotient and remainder."""
    assert agree(
        """
        import torch.distributed as dist

        PLAN = {True: ("broadcast", {"src": 0}), False: ("all_reduce", {})}

        def by_name(cell):
            name, options = PLAN[dist.get_rank() < 1]
            getattr(dist, name)(cell, **options)  # SPG103

        def one_name(cell):
            name, options = PLAN[cell is not None]
            getattr(dist, name)(cell, **options)

        def by_position(cell):
            operation = (dist.barrier, print)[dist.get_rank() == 0]
            operation()  # SPG105

        def settled(cell):
            row, column = divmod(dist.get_rank(), dist.get_world_size())
            if row == 0:
                dist.all_reduce(cell)
            else:
                dist.barrier()

        def by_column(cell):
            row, column = divmod(dist.get_rank(), dist.get_world_size())
            if column == 0:
                dist.barrier()  # SPG101
        """,
        *PARTING,
    )


def test_any_and_all_end_at_the_first_answer() -> None:
    """A collective for each item of a generator expression: as many as this rank needs for its answer."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        def attempt(number, rank):
            dist.all_reduce(torch.tensor([float(number)]))
            return number * (rank + 1) >= 4

        def vote(number):
            cell = torch.tensor([float(number)])
            dist.all_reduce(cell)
            return cell.item() > 4

        def first_of_mine(limit):
            rank = dist.get_rank()
            return any(attempt(i, rank) for i in range(limit))  # SPG102

        def all_of_mine(limit):
            rank = dist.get_rank()
            return all(attempt(i, rank) for i in range(limit))  # SPG102

        def complete(limit):
            rank = dist.get_rank()
            return any([attempt(i, rank) for i in range(limit)])

        def agreed(limit):
            return any(vote(i) for i in range(limit))
        """,
        *PARTING,
    )


def test_length_of_what_ranks_were_told() -> None:
    """A list that was broadcast has one length everywhere, until one rank takes an item off it."""
    assert agree(
        """
        import torch.distributed as dist

        def told(names):
            found = [sorted(names)] if dist.get_rank() == 0 else [None]
            dist.broadcast_object_list(found, src=0)
            return found[0]

        def kept(names):
            steps = told(names)
            if len(steps) > 2:
                dist.barrier()

        def trimmed(names):
            steps = told(names)
            if dist.get_rank() == 0:
                steps.pop(0)
            if len(steps) > 2:
                dist.barrier()  # SPG101
        """,
        *PARTING,
    )


def test_the_mesh_of_a_tensor_is_no_content() -> None:
    """The mesh over which a tensor of random numbers is spread is the same everywhere; the numbers are not."""
    assert agree(
        """
        import itertools
        import torch
        import torch.distributed as dist

        def groups(mesh):
            for combination in itertools.product(*[range(mesh.size(d)) for d in range(mesh.ndim)]):
                dist.new_group([int(rank) for rank in mesh.mesh[combination].flatten().tolist()])

        def of_mesh():
            groups(torch.randn(64, 8).device_mesh)

        def of_numbers():
            dist.new_group(torch.randn(64, 8).argsort().tolist())  # SPG106
        """,
        "SPG106",
    )
