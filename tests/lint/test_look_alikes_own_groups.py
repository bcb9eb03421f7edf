"""Modules wrapped with a group of their own: its members alone call them."""

from __future__ import annotations

import textwrap

from tests.lint.rules.marked import agree


def test_modules_of_some_ranks() -> None:
    """The members of the module's group call it; in the group of all, or where one member stays out, ranks wait."""
    assert agree(
        """
        import torch
        import torch.distributed as dist
        from torch.nn.parallel import DistributedDataParallel as DDP

        def first(model, n, batches):
            rank = dist.get_rank()
            group = dist.new_group(list(range(n)))
            if rank < n:
                model = DDP(model, process_group=group)
            for x in batches:
                if rank < n:
                    y = model(x)
                    y.sum().backward()

        def named(model, batches):
            group = dist.new_group([0, 1])
            if dist.get_rank() in (0, 1):
                model = DDP(model, process_group=group)
                for x in batches:
                    model(x).sum().backward()

        def world(model, n, batches):
            rank = dist.get_rank()
            model = DDP(model)
            for x in batches:
                if rank < n:
                    y = model(x)  # SPG101
                    y.sum().backward()

        def part_of_it(model, batches):
            rank = dist.get_rank()
            group = dist.new_group([0, 1])
            if rank < 2:
                model = DDP(model, process_group=group)
                for x in batches:
                    if rank == 0:
                        model(x).sum().backward()  # SPG106

        def no_group(model, batches):
            rank = dist.get_rank()
            model = DDP(model, process_group=None)
            for x in batches:
                if rank == 0:
                    model(x).sum().backward()  # SPG101

        class Trainer:
            def __init__(self, model, n):
                self.rank = dist.get_rank()
                self.group = dist.new_group(list(range(n)))
                self.n = n
                if self.rank < n:
                    self.model = DDP(model, process_group=self.group)

            def step(self, x):
                if self.rank < self.n:
                    self.model(x).sum().backward()
        """,
        "SPG101",
        "SPG106",
    )


def test_models_from_elsewhere() -> None:
    """Where the file wraps with a group, nobody knows that of another model; else it is the one of all."""
    source = """
        import torch
        import torch.distributed as dist
        from torch.nn.parallel import DistributedDataParallel

        def make(models, group):
            models.reference = DistributedDataParallel(torch.nn.Linear(2, 2), {arguments})
            return models

        def train(make_model, n, batches):
            for x in batches:
                if dist.get_rank() < n:
                    make_model()(x).backward(){mark}
        """
    named = textwrap.dedent(source).format(arguments="device_ids=[int(0)], process_group=group", mark="")
    assert agree(named, "SPG101")
    plain = textwrap.dedent(source).format(arguments="process_group=None", mark="  # SPG101")
    assert agree(plain, "SPG101")
