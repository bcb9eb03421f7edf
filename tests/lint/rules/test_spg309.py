"""SPG309: data divided by an order that each rank draws for itself."""

from __future__ import annotations

from tests.lint.rules.marked import agree


def test_seed_of_the_sampler() -> None:
    """A seed from the clock, the rank or a generator without a seed."""
    assert agree(
        """
        import random
        import time

        import torch
        import torch.distributed as dist
        from torch.utils.data import DistributedSampler, Sampler

        def by_clock(data):
            dist.barrier()
            return DistributedSampler(data, seed=int(time.time()))  # SPG309

        def by_rank(data):
            return DistributedSampler(data, seed=1234 + dist.get_rank())  # SPG309

        def drawn(data):
            dist.barrier()
            seed = random.randint(0, 2**31)
            return DistributedSampler(data, num_replicas=2, rank=0, shuffle=True, seed=seed)  # SPG309
        """,
        "SPG309",
    )


def test_own_sampler() -> None:
    """A sampler of the project that divides by rank."""
    assert agree(
        """
        import random
        import time

        import torch
        import torch.distributed as dist
        from torch.utils.data import DistributedSampler, Sampler

        class Own(Sampler):
            def __init__(self, length, seed=0):
                self.length, self.seed = length, seed

            def __iter__(self):
                gen = torch.Generator().manual_seed(self.seed)
                order = torch.randperm(self.length, generator=gen).tolist()
                return iter(order[dist.get_rank() :: dist.get_world_size()])

        def make(data):
            return Own(len(data), seed=random.SystemRandom().randrange(9))  # SPG309

        make([])
        """,
        "SPG309",
    )


def test_shuffled_list() -> None:
    """A list shuffled by each rank, of which each takes its share."""
    assert agree(
        """
        import random
        import time

        import torch
        import torch.distributed as dist
        from torch.utils.data import DistributedSampler, Sampler

        def mine(files):
            random.shuffle(files)
            return files[dist.get_rank() :: dist.get_world_size()]  # SPG309
        """,
        "SPG309",
    )


def test_shared_seed() -> None:
    """A constant, a parameter, or a broadcast seed is silent."""
    assert agree(
        """
        import random
        import time

        import torch
        import torch.distributed as dist
        from torch.utils.data import DistributedSampler, Sampler

        class Own(Sampler):
            def __init__(self, length, seed=0):
                self.length, self.seed = length, seed

            def __iter__(self):
                gen = torch.Generator().manual_seed(self.seed)
                order = torch.randperm(self.length, generator=gen).tolist()
                return iter(order[dist.get_rank() :: dist.get_world_size()])

        def constant(data):
            return DistributedSampler(data, seed=7), Own(len(data), seed=7)

        def given(data, seed):
            return DistributedSampler(data, seed=seed)

        def told(data):
            seed = [int(time.time())]
            dist.broadcast_object_list(seed, src=0)
            return DistributedSampler(data, seed=seed[0])

        def seeded(files):
            random.seed(3)
            random.shuffle(files)
            return files[dist.get_rank() :: dist.get_world_size()]
        """,
        "SPG309",
    )


def test_own_draws() -> None:
    """A sampler that draws for each rank without dividing is meant to differ."""
    assert agree(
        """
        import random
        import time

        import torch
        import torch.distributed as dist
        from torch.utils.data import DistributedSampler, Sampler

        class Independent(Sampler):
            def __init__(self, length, seed=0):
                self.length, self.seed = length, seed

            def __iter__(self):
                return iter(range(self.length))

        def make(data):
            return Independent(len(data), seed=random.randrange(9))
        """,
        "SPG309",
    )


def test_generator_object() -> None:
    """The shuffle of a generator object with a seed of the rank's own."""
    assert agree(
        """
        import random
        import time

        import torch
        import torch.distributed as dist
        from torch.utils.data import DistributedSampler, Sampler

        def mine(files):
            random.Random(dist.get_rank()).shuffle(files)
            return files[dist.get_rank() :: dist.get_world_size()]  # SPG309
        """,
        "SPG309",
    )


def test_contiguous_share() -> None:
    """A contiguous share of an order of its own, but not of other drawn numbers."""
    assert agree(
        """
        import numpy as np
        import torch.distributed as dist

        def mine(count, size):
            rank = dist.get_rank()
            order = np.random.permutation(count)
            return order[rank * size : (rank + 1) * size]  # SPG309

        def noise(count, size):
            rank = dist.get_rank()
            values = np.random.rand(count)
            return values[rank * size : (rank + 1) * size]
        """,
        "SPG309",
    )


def test_default_generator_of_torch() -> None:
    """Torch's default generator starts alike everywhere, until the code seeds it by rank."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        def alike(count):
            order = torch.randperm(count)
            return order[dist.get_rank() :: dist.get_world_size()]

        def apart(count):
            torch.manual_seed(dist.get_rank())
            order = torch.randperm(count)
            return order[dist.get_rank() :: dist.get_world_size()]  # SPG309
        """,
        "SPG309",
    )


def test_shares_of_empty_and_ranked_sequences() -> None:
    """A share of an empty tuple, or of numbers made of the rank, is no share of a drawn order."""
    assert agree(
        """
        import torch.distributed as dist

        def shares():
            rank, world = dist.get_rank(), dist.get_world_size()
            dist.barrier()
            return ()[rank::world], (rank, world)[rank::world], [*(), rank][rank::world]
        """,
        "SPG309",
    )


def test_shares_of_a_listing() -> None:
    """Names in a folder, of which a rank takes every so many or a piece, in the order of this machine."""
    assert agree(
        """
        import glob
        import os
        from pathlib import Path

        import torch.distributed as dist

        def direct(folder):
            files = os.listdir(folder)
            return files[dist.get_rank() :: dist.get_world_size()]  # SPG309

        def chosen(folder):
            files = [name for name in os.listdir(folder) if name.endswith(".jsonl")]
            return files[dist.get_rank() :: dist.get_world_size()]  # SPG309

        def pieces(folder):
            files = [str(path) for path in Path(folder).rglob("*.bin")]
            share = len(files) // dist.get_world_size()
            rank = dist.get_rank()
            return files[rank * share : (rank + 1) * share]  # SPG309

        def counted(folder, work):
            world, rank = dist.get_world_size(), dist.get_rank()
            for i, path in enumerate(glob.glob(folder + "/*")):  # SPG309
                if i % world != rank:
                    continue
                work(path)
        """,
        "SPG309",
    )


def test_listings_that_are_the_same() -> None:
    """Sorted listings, one that rank 0 made for all, lists from elsewhere, and a share among ranks of one machine."""
    assert agree(
        """
        import glob
        import os

        import torch.distributed as dist

        def at_once(folder):
            files = sorted(glob.glob(folder + "/*"))
            return files[dist.get_rank() :: dist.get_world_size()]

        def in_place(folder):
            files = [name for name in os.listdir(folder) if name.endswith(".jsonl")]
            files.sort()
            return files[dist.get_rank() :: dist.get_world_size()]

        def by_one(folder):
            files = [os.listdir(folder) if dist.get_rank() == 0 else None]
            dist.broadcast_object_list(files, src=0)
            return files[0][dist.get_rank() :: dist.get_world_size()]

        def given(files):
            return files[dist.get_rank() :: dist.get_world_size()]

        def on_one_machine(folder, per_host):
            files = os.listdir(folder)
            local_rank = int(os.environ["LOCAL_RANK"])
            return files[local_rank::per_host]

        def counted(folder, work):
            for i, name in enumerate(sorted(os.listdir(folder))):
                if i % dist.get_world_size() == dist.get_rank():
                    work(name)

        def every_tenth(folder, work):
            for i, name in enumerate(os.listdir(folder)):
                if i % 10 == 0:
                    work(name)
        """,
        "SPG309",
    )


def test_data_of_a_file_out_of_a_sorted_listing() -> None:
    """Each rank takes its part of the rows of one file: `sorted` says which file that is, on all machines."""
    assert agree(
        """
        import glob

        import torch.distributed as dist

        class Loader:
            def __init__(self, pattern):
                self.files = sorted(glob.glob(pattern))
                self.rows = load(self.files[0])

            def batch(self, size):
                start = dist.get_rank() * size
                return self.rows[start : start + size]

        def picked(pattern, numbers):
            rows = pick(sorted(glob.glob(pattern)), numbers)
            return rows[dist.get_rank() :: dist.get_world_size()]

        class Stream:
            def __init__(self, pattern):
                self.files = sorted(glob.glob(pattern))
                self.shard = -1
                self.advance()

            def advance(self):
                self.shard = (self.shard + 1) % len(self.files)
                self.position = 0
                self.rows = load(self.files[self.shard])

            def batch(self, size):
                if self.position + size >= len(self.rows):
                    self.advance()
                start = self.position + dist.get_rank() * size
                self.position += size
                return self.rows[start : start + size]

        stream = Stream("*.bin")
        while True:
            rows = stream.batch(8)

        def of_any_file(pattern, size):
            rows = load(glob.glob(pattern)[0])
            return rows[dist.get_rank() * size :]  # SPG309
        """,
        "SPG309",
    )
