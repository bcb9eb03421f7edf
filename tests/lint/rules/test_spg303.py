"""SPG303: collectives that a random draw decides on."""

from __future__ import annotations

from tests.lint.rules.marked import agree

RANDOM = ("SPG101", "SPG102", "SPG303", "SPG305", "SPG401")


def test_draws_of_their_own() -> None:
    """Python's, NumPy's and torch's generators, unseeded or seeded by the rank."""
    assert agree(
        """
        import random
        import numpy as np
        import torch
        import torch.distributed as dist

        def by_random(x, p):
            if random.random() < p:
                dist.all_reduce(x)  # SPG303

        def by_numpy(xs, p):
            for x in xs:
                if np.random.rand() < p:
                    continue  # SPG303
                dist.all_reduce(x)

        def by_torch(x):
            if torch.rand(1).item() < 0.5:
                return  # SPG303
            dist.all_reduce(x)

        def choice(x, names):
            if random.choice(names) == "sync":
                dist.barrier()  # SPG303
        """,
        *RANDOM,
    )


def test_shared_draws_are_silent() -> None:
    """A generator with one seed for all, a broadcast draw, a draw that only changes data."""
    assert agree(
        """
        import random
        import numpy as np
        import torch
        import torch.distributed as dist

        def one_seed(xs, seed, p):
            shared = random.Random(seed)
            for x in xs:
                if shared.random() < p:
                    continue
                dist.all_reduce(x)

        def numpy_seed(xs, seed, p):
            rng = np.random.default_rng(seed)
            for x in xs:
                if rng.random() < p:
                    continue
                dist.all_reduce(x)

        def broadcast(x, p):
            draw = torch.rand(1)
            dist.broadcast(draw, src=0)
            if draw.item() < p:
                dist.all_reduce(x)

        def noise(x):
            x = x + torch.randn(3)
            dist.all_reduce(x)
        """,
        *RANDOM,
    )
