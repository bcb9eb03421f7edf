"""SPG111: lists of outputs that hold one tensor several times."""

from __future__ import annotations

from tests.lint.rules.marked import agree


def test_one_tensor_several_times() -> None:
    """A list that is multiplied, one tensor written twice, in a helper and in a field."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        def multiplied(x):
            parts = [torch.empty_like(x)] * dist.get_world_size()
            dist.all_gather(parts, x)  # SPG111
            return parts

        def written_twice(x, out):
            dist.all_gather([out, out], x)  # SPG111

        def collect(parts, x):
            dist.all_gather(parts, x)  # SPG111

        def caller(x):
            zero = torch.zeros(4)
            collect([zero] * 2, x)

        class Gatherer:
            def __init__(self, size):
                self.parts = [torch.zeros(size)] * dist.get_world_size()

            def gather(self, x):
                dist.all_gather(self.parts, x)  # SPG111

        def use(x):
            Gatherer(4).gather(x)
        """,
        "SPG111",
    )


def test_tensors_of_their_own() -> None:
    """One tensor for each rank, objects that are replaced, equal calls that make two tensors, and filled lists."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        def comprehended(x):
            parts = [torch.empty_like(x) for _ in range(dist.get_world_size())]
            dist.all_gather(parts, x)

        def objects(x):
            parts = [None] * dist.get_world_size()
            dist.all_gather_object(parts, x)

        def two(x):
            dist.all_gather([torch.empty(4), torch.empty(4)], x)

        def replaced(x):
            world = dist.get_world_size()
            parts = [torch.empty_like(x)] * world
            for rank in range(world):
                parts[rank] = torch.empty_like(x)
            dist.all_gather(parts, x)

        def inputs(x):
            dist.reduce_scatter(x, [torch.ones(4)] * 2)
        """,
        "SPG111",
    )
