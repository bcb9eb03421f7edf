"""SPG107: dtypes that differ between the ranks of one collective."""

from __future__ import annotations

import pytest

from tests.lint.rules.marked import agree


def test_dtypes_by_rank() -> None:
    """Chosen from a table, by a conversion in one arm, in a helper, and in an object's field."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        KINDS = (torch.float32, torch.float64)
        HALF = torch.float16

        class Accumulator:
            def __init__(self, size):
                self.kind = KINDS[dist.get_rank() % 2]
                self.values = torch.ones(size, dtype=self.kind)

            def total(self):
                dist.all_reduce(self.values)  # SPG107

        def use(size):
            Accumulator(size).total()

        def converted(x):
            rank = dist.get_rank()
            kind = torch.bfloat16 if rank == 0 else torch.float32
            dist.broadcast(x.to(kind), src=0)  # SPG107

        def one_converts(x):
            if dist.get_rank() == 0:
                x = x.half()
            dist.all_reduce(x)  # SPG107

        def made(size):
            if dist.get_rank() == 0:
                x = torch.zeros(size, dtype=HALF)
            else:
                x = torch.zeros(size)
            dist.all_reduce(x)  # SPG107

        def like(x):
            rank = dist.get_rank()
            y = torch.zeros_like(x, dtype=torch.int64 if rank else torch.int32)
            outs = [torch.empty_like(y) for _ in range(dist.get_world_size())]
            dist.all_gather(outs, y)  # SPG107

        def helper(x, kind):
            dist.all_reduce(x.to(device="cuda", dtype=kind))  # SPG107

        def caller(x):
            helper(x, torch.double if dist.get_rank() == 0 else torch.float)
        """,
        "SPG107",
    )


def test_one_dtype() -> None:
    """Equal dtypes in other words, settings, a device by rank, conversions on every rank or after the call."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        def other_words(size):
            if dist.get_rank() == 0:
                x = torch.zeros(size, dtype=torch.half)
                y = torch.ones(size)
            else:
                x = torch.zeros(size).to(torch.float16)
                y = torch.ones(size).float()
            dist.all_reduce(x)
            dist.all_reduce(y)

        def setting(x, kind, fast):
            dist.all_reduce(x.to(kind))
            dist.all_reduce(torch.zeros(2, dtype=torch.float16 if fast else torch.float32))

        def placed(x):
            rank = dist.get_rank()
            dist.all_reduce(torch.zeros(3, device=f"cuda:{rank}"))
            dist.all_reduce(x.to(rank))

        def everywhere(x):
            x = x.half()
            dist.all_reduce(x)
            return x.float() if dist.get_rank() == 0 else x

        def filled(x):
            if dist.get_rank() == 0:
                x = torch.as_tensor([1, 2])
            dist.broadcast(x, src=0)
        """,
        "SPG107",
    )


def test_known_miss_computed() -> None:
    """What arithmetic makes of a dtype is not known."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        def computed(x):
            scale = torch.ones(1, dtype=torch.float64) if dist.get_rank() == 0 else torch.ones(1)
            dist.all_reduce(x * scale)
        """,
        "SPG107",
    )


ARRAYS = """
    import numpy as np
    import torch
    import torch.distributed as dist

    def weights(path, n, counts):
        if dist.get_rank() == 0:
            made = ROOT
        else:
            made = OTHERS
        dist.broadcast(made, src=0)CODE
        return made
"""
EMPTY = "torch.empty(n)"


@pytest.mark.parametrize(
    ("root", "others"),
    [
        ("torch.from_numpy(np.zeros(n))", EMPTY),
        ("torch.from_numpy(np.ones(n) / 3).cuda()", "torch.empty(n).cuda()"),
        ("torch.as_tensor(np.random.rand(n))", EMPTY),
        ("torch.from_numpy(1 / np.array([float(c) for c in counts]))", EMPTY),
        ("torch.tensor(np.linspace(0, 1, n).astype(np.float16))", EMPTY),
        ("torch.from_numpy(np.zeros(n, dtype=np.float32))", "torch.empty(n, dtype=torch.float64)"),
        ("torch.from_numpy(np.array([c for c in counts]).mean(0))", EMPTY),
        ("torch.from_numpy(np.linspace(0.0, 1.0, n))", EMPTY),
        ("torch.from_numpy(np.exp(-40.0 * (np.linspace(0.0, 1.0, 64) - 0.5) ** 2))", EMPTY),
        ("torch.as_tensor(np.abs(-np.ones(n)) // 2)", EMPTY),
        ("torch.from_numpy(np.maximum(np.zeros(n), 0.5))", EMPTY),
    ],
)
def test_arrays_of_64_bits(root: str, others: str) -> None:
    """An array has 64 bits unless it is told otherwise, and a tensor made of it keeps them."""
    source = ARRAYS.replace("ROOT", root).replace("OTHERS", others)
    assert agree(source.replace("CODE", "  # SPG107"), "SPG107")


@pytest.mark.parametrize(
    ("root", "others"),
    [
        ("torch.from_numpy(np.zeros(n)).float()", EMPTY),
        ("torch.from_numpy(np.zeros(n, dtype=np.float32))", EMPTY),
        ("torch.from_numpy(np.zeros(n, 'f4'))", EMPTY),
        ("torch.from_numpy(np.zeros(n).astype('float32'))", EMPTY),
        ("torch.tensor(np.zeros(n), dtype=torch.float32)", EMPTY),
        ("torch.from_numpy(np.zeros(n))", "torch.empty(n, dtype=torch.double)"),
        ("torch.from_numpy(np.load(path))", EMPTY),
        ("torch.from_numpy(np.array([c for c in counts]))", EMPTY),
        ("torch.from_numpy(np.array([c for c in counts]) * path)", EMPTY),
        ("torch.from_numpy(np.zeros(n) / np.load(path))", EMPTY),
        ("torch.from_numpy(np.sin(np.linspace(0, 1, n, dtype=np.float32)))", EMPTY),
        ("torch.from_numpy(np.linspace(0, 1, n, True, False, 'f4'))", EMPTY),
        ("torch.from_numpy(np.maximum(np.load(path), 0.5))", EMPTY),
        ("torch.from_numpy(np.exp(-np.load(path)))", EMPTY),
    ],
)
def test_arrays_that_fit_or_are_not_known(root: str, others: str) -> None:
    """A conversion, another dtype on the other side, and arrays of which no call tells the dtype."""
    source = ARRAYS.replace("ROOT", root).replace("OTHERS", others)
    assert agree(source.replace("CODE", ""), "SPG107")
