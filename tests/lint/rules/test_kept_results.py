"""Results kept by this rank's own data: a rank that has seen its key before skips the collective."""

from __future__ import annotations

from tests.lint.rules.marked import agree

CODES = ("SPG101", "SPG102", "SPG104", "SPG305")


def test_functions_with_a_cache() -> None:
    """``lru_cache`` and the like around a collective, with a key of this rank's own."""
    assert agree(
        """
        import functools
        from functools import cache, lru_cache

        import torch
        import torch.distributed as dist

        @lru_cache(maxsize=None)
        def common(longest):
            value = torch.tensor([longest])
            dist.all_reduce(value, op=dist.ReduceOp.MAX)
            return int(value)

        def pad(loader):
            for rows in loader:
                common(max(map(len, rows)))  # SPG305

        class Groups:
            @functools.cache
            def of(self, size):
                return dist.new_group(list(range(size)))

            def run(self, loader):
                for batch in loader:
                    self.of(len(batch["label"].unique()))  # SPG305

        @cache
        def by_steps(step):
            return common(step)

        def agreed(loader, steps):
            for step in range(steps):
                by_steps(step)
            common(dist.get_rank())
            for rows in loader:
                longest = torch.tensor([rows.sum().item()])
                dist.all_reduce(longest)
                common(int(longest))

        @lru_cache
        def local(longest):
            return longest * 2

        def no_collective(loader):
            for rows in loader:
                local(rows.sum().item())
        """,
        *CODES,
    )


def test_own_dictionaries() -> None:
    """A dictionary of the class or the module that the function fills under its key."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        KEPT = {}

        def agreed(n):
            value = torch.tensor([n])
            dist.all_reduce(value)
            return int(value)

        def of_module(n):
            if n not in KEPT:
                KEPT[n] = agreed(n)  # SPG305
            return KEPT[n]

        class Widths:
            def __init__(self):
                self.kept = {}

            def leaves(self, n):
                if n in self.kept:
                    return self.kept[n]  # SPG102
                self.kept[n] = agreed(n)
                return self.kept[n]

            def asks(self, n):
                found = self.kept.get(n)
                if found is None:
                    found = self.kept[n] = agreed(n)  # SPG305
                return found

            def run(self, loader):
                for rows in loader:
                    self.leaves(rows.sum().item())
                    self.asks(rows.max().item())
                    of_module(rows.min().item())

            def fine(self, loader, steps):
                for step in range(steps):
                    self.leaves(step)
                    self.asks(step)
                    of_module(dist.get_rank())
        """,
        *CODES,
    )


KEPT = """
import functools
from functools import cache, cached_property, lru_cache
import torch.distributed as dist
"""


def test_a_result_that_all_ranks_keep() -> None:
    """A function with a cache does nothing more where every rank has called it before with the same key."""
    for decorator in ("lru_cache", "lru_cache()", "functools.lru_cache(maxsize=None)", "cache"):
        assert agree(
            KEPT
            + f"""
@{decorator}
def cpu_group(backend="gloo"):
    if dist.get_backend() == "nccl":
        return dist.new_group(backend=backend)
    return dist.group.WORLD

def describe():
    return dist.get_backend(cpu_group())

def setup(parts):
    cpu_group()
    if dist.get_rank() == 0:
        print(describe())
    dist.all_gather_object(parts, 1, group=cpu_group())

def told(parts):
    if dist.get_rank() == 0:
        print(describe())  # SPG106
    dist.barrier()
    dist.all_gather_object(parts, 1, group=cpu_group())

def another_key():
    cpu_group()
    if dist.get_rank() == 0:
        cpu_group("mpi")  # SPG106

def in_rounds(steps):
    for step in range(steps):
        cpu_group()
        if dist.get_rank() == 0:
            cpu_group()

def on_another_way(wanted):
    if wanted:
        cpu_group()
    if dist.get_rank() == 0:
        cpu_group()  # SPG106
""",
            "SPG101",
            "SPG104",
            "SPG106",
        )


def test_properties_that_are_computed_once() -> None:
    """A cached property and a method with a cache: kept by each object for itself."""
    assert agree(
        KEPT
        + """
class Groups:
    @cached_property
    def cpu(self):
        return dist.new_group(backend="gloo")

    @cache
    def of(self, size):
        return dist.new_group(list(range(size)))

def before(size):
    groups = Groups()
    print(groups.cpu, groups.of(2))
    if dist.get_rank() == 0:
        print(groups.cpu, groups.of(2))

def not_before():
    groups = Groups()
    if dist.get_rank() == 0:
        print(groups.cpu)  # SPG106

def of_another_object():
    for _ in range(2):
        groups = Groups()
        if dist.get_rank() == 0:
            print(groups.cpu)  # SPG106
        dist.barrier()
        print(groups.cpu)

def the_others_later():
    groups = Groups()
    if dist.get_rank() == 0:
        print(groups.cpu)
    print(groups.cpu)
""",
        "SPG101",
        "SPG104",
        "SPG106",
    )


def test_results_kept_for_a_time() -> None:
    """What a cache with a time limit keeps may have to be made again, on any rank."""
    assert agree(
        """
import cachetools.func
import torch.distributed as dist

@cachetools.func.ttl_cache(ttl=60)
def members():
    names = [None] * dist.get_world_size()
    dist.all_gather_object(names, 1)
    return names

def twice():
    members()
    if dist.get_rank() == 0:
        members()  # SPG104
""",
        "SPG101",
        "SPG104",
    )


def test_keys_that_a_function_compares_with_other_ranks() -> None:
    """Who reduces or gathers the length that is the key of a kept result expects it to differ; names do not."""
    assert agree(
        """
        import functools

        import torch
        import torch.distributed as dist

        @functools.lru_cache(maxsize=128)
        def common(frames):
            t = torch.tensor([frames + 1])
            dist.all_reduce(t, op=dist.ReduceOp.MAX)
            return int(t)

        def pad(loader):
            for batch in loader:
                common(batch.shape[1])  # SPG305

        class Lengths:
            @functools.cache
            def all_of(self, own):
                found = [None] * dist.get_world_size()
                dist.all_gather_object(found, own)
                return found

            def run(self, batches):
                for batch in batches:
                    self.all_of(len(batch))  # SPG305

        _known = {}

        def by_hand(own):
            if own not in _known:
                value = torch.tensor(own)
                dist.all_reduce(value)  # SPG305
                _known[own] = value.item()
            return _known[own]

        def each(batches):
            for batch in batches:
                by_hand(batch.shape[0])

        def steps(num):
            for step in range(num):
                common(step)
            common(8)
            common(dist.get_world_size())

        @functools.lru_cache
        def group_of(size):
            return dist.new_group(list(range(size)))

        def groups(sizes):
            for size in sizes:
                group_of(size)

        @functools.lru_cache
        def mean_of_flag(name):
            value = torch.ones(())
            dist.all_reduce(value)
            return value, name

        def named(names):
            for name in names:
                mean_of_flag(name)

        _groups = {}

        def group_for(spec):
            if spec not in _groups:
                mine = (spec, dist.get_rank())
                every = [None] * dist.get_world_size()
                dist.all_gather_object(every, mine)
                _groups[spec] = dist.new_group(sorted(every))
            return _groups[spec]

        @functools.lru_cache
        def longest(split):
            value = torch.tensor(max(map(len, split)))
            dist.all_reduce(value, op=dist.ReduceOp.MAX)
            return value

        def splits(names):
            for name in names:
                group_for(name)
                longest(name)
        """,
        *CODES,
    )
