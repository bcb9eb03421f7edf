"""Words that the rank chooses, and records of fields: what a later test of them says."""

from __future__ import annotations

from tests.lint.rules.marked import agree

ARMS = ("SPG101", "SPG102", "SPG103", "SPG104", "SPG105")


def test_one_of_a_few_words_by_the_rank() -> None:
    """Words that the rank chooses, told apart again; with an answer of its own for one word, ranks do part."""
    assert agree(
        """
        import torch.distributed as dist

        def place_of(rank, size):
            if rank == 0:
                return "head"
            if rank == size - 1:
                return "tail"
            return "body"

        def ready(place):
            if place == "head" or place == "tail":
                return True
            if place != "body":
                raise ValueError(place)
            return True

        def ready_at_the_ends(place):
            match place:
                case "head" | "tail":
                    return True
                case "body":
                    return False
            raise ValueError(place)

        def alike(x):
            place = place_of(dist.get_rank(), dist.get_world_size())
            if not ready(place):
                return
            dist.all_reduce(x)

        def apart(x):
            place = place_of(dist.get_rank(), dist.get_world_size())
            if not ready_at_the_ends(place):
                return  # SPG102
            dist.all_reduce(x)
        """,
        *ARMS,
    )


def test_fields_of_plain_records() -> None:
    """A field is what was written to it last: the number that all were told, or this rank's own."""
    assert agree(
        """
        import argparse
        from types import SimpleNamespace

        import torch
        import torch.distributed as dist

        def tell(control):
            told = torch.tensor([int(control.stop)])
            dist.broadcast(told, src=0)
            control.stop = bool(told.item())

        def watch(control, loss):
            if control.main and loss < 0.1:
                control.stop = True

        def agreed(losses):
            control = SimpleNamespace(main=dist.get_rank() == 0, stop=False)
            for loss in losses:
                dist.barrier()
                watch(control, loss)
                tell(control)
                if control.stop:
                    break

        def by_options():
            options = argparse.Namespace(rank=dist.get_rank(), steps=3)
            for _ in range(options.steps):
                dist.barrier()
            if options.rank == 0:
                dist.barrier()  # SPG101

        def alone(losses):
            control = SimpleNamespace(main=dist.get_rank() == 0)
            control.stop = False
            for loss in losses:
                dist.barrier()
                watch(control, loss)
                if control.stop:
                    break  # SPG102

        def opaque(given):
            options = SimpleNamespace(**given)
            if options.wait:
                dist.barrier()
        """,
        *ARMS,
    )
