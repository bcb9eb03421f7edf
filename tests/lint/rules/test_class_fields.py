"""Fields of classes: where some ranks assign one, the others have what the class body says."""

from __future__ import annotations

from tests.lint.rules.marked import agree

TRACKER = """
import torch
import torch.distributed as dist
from elsewhere import Block

class Tracker:
    values = None

    @classmethod
    def add(cls, loss):
        if cls.values is None:
            cls.values = torch.zeros(8)
        cls.values += loss

    @classmethod
    def reduce(cls):
        if cls.values is None:
            return None{mark}
        total = cls.values
        cls.values = None
        dist.all_reduce(total)
        return total

def main(x, settings):
    rank = dist.get_rank()
    blocks = torch.nn.ModuleList()
    {body}
    for step in range(10):
        Tracker.reduce()
"""


def test_assigned_on_some_ranks() -> None:
    """By a method, by name, and by a function that another package gets under a condition on the rank."""
    for body in (
        "if rank > 0: Tracker.add(x)",
        "if rank > 0: Tracker.values = x",
        "Block(rank) if rank == 1 else Tracker.add(x)",
        "if rank > 1: blocks.append(Block(lambda loss: Tracker.add(loss)))",
        "if rank > 1: blocks.append(Block(on_loss=Tracker.add))",
        """for layer in range(rank * 2, rank * 2 + 2):
        if settings[layer] == 4:
            hook = lambda loss, layer=layer: Tracker.add(loss)
            blocks.append(Block(on_loss=hook))""",
    ):
        assert agree(TRACKER.format(mark="  # SPG102", body=body), "SPG102")


def test_assigned_on_all_ranks_or_none() -> None:
    """Everywhere, nowhere, by settings, and by a function that every rank hands on."""
    for body in (
        "Tracker.add(x)",
        "pass",
        "if settings.track: Tracker.add(x)",
        "blocks.append(Block(lambda loss: Tracker.add(loss)))",
        "if rank > 1: blocks.append(Block(lambda loss: print(loss)))",
    ):
        assert agree(TRACKER.format(mark="", body=body), "SPG102")


def test_a_field_with_a_first_value_everywhere() -> None:
    """Read with a default where nothing was assigned: the collective is called on every rank."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        class Tracker:
            values = None
            count = 0

        def main(x):
            if dist.get_rank() > 0:
                Tracker.values = x
                Tracker.count += 1
            total = Tracker.values
            if total is None:
                total = torch.zeros(8)
            dist.all_reduce(total)
            if Tracker.count:
                dist.barrier()  # SPG101
        """,
        "SPG101",
        "SPG102",
    )
