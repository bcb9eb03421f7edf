"""Built-in hashes of texts, which Python salts in each process: no two ranks have the same."""

from __future__ import annotations

from tests.lint.rules.marked import agree

RULES = ("SPG101", "SPG107", "SPG306", "SPG401")


def test_owners_by_hash_differ_between_ranks() -> None:
    """A root computed from the hash of a name: in place, in a method, of a tuple that holds a text."""
    assert agree(
        """
        import torch.distributed as dist

        def owners(tables):
            for name, table in tables.items():
                owner = hash(name) % dist.get_world_size()
                dist.broadcast(table, src=owner)  # SPG107

        class Owners:
            def __init__(self):
                self.world = dist.get_world_size()

            def of(self, name, step):
                return abs(hash((name, step))) % self.world

            def share(self, named):
                for name, p in named:
                    dist.broadcast(p, self.of(name, 3))  # SPG107

        def sampled(name, x):
            if hash(f"{name}") % 10 == 0:
                dist.all_reduce(x)  # SPG306
        """,
        *RULES,
    )


def test_hashes_that_all_processes_compute_alike_are_silent() -> None:
    """Numbers, a class that says what its hash is, digests, and a hash that one rank tells the others."""
    assert agree(
        """
        import hashlib
        import zlib
        import torch.distributed as dist

        def numbers(tables):
            for index, table in enumerate(tables):
                dist.broadcast(table, src=hash(index) % dist.get_world_size())
                dist.broadcast(table, src=hash((index, 3)) % dist.get_world_size())
                dist.broadcast(table, src=hash(3) % dist.get_world_size())

        def digests(tables):
            for name, table in tables.items():
                dist.broadcast(table, src=zlib.crc32(name.encode()) % dist.get_world_size())
                digest = int(hashlib.md5(name.encode()).hexdigest(), 16)
                dist.broadcast(table, src=digest % dist.get_world_size())

        class Key:
            def __init__(self, n):
                self.n = n

            def __hash__(self):
                return self.n

        def own(table):
            dist.broadcast(table, src=hash(Key(3)) % dist.get_world_size())

        def told(name, table):
            box = [hash(name) % dist.get_world_size()]
            dist.broadcast_object_list(box, src=0)
            dist.broadcast(table, src=box[0])
        """,
        *RULES,
    )
