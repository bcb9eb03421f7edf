"""What is made on every rank and runs where it is consumed: ``map``, generator expressions, coroutines."""

from __future__ import annotations

from tests.lint.rules.marked import agree

ARMS = ("SPG101", "SPG102", "SPG103", "SPG104", "SPG105", "SPG401")
MEAN = """
import asyncio
import torch
import torch.distributed as dist

def mean(t):
    dist.all_reduce(t)
    return t.item() / dist.get_world_size()

def make(values):
    return (mean(value) for value in values)
"""


def test_consumed_by_one_rank() -> None:
    """A lazy value that one rank alone turns into a list, loops over, sums, spreads out or takes an item of."""
    assert agree(
        MEAN
        + """
def listed(values):
    means = map(mean, values)
    if dist.get_rank() == 0:
        print(list(means))  # SPG104

def looped(values):
    means = (mean(value) for value in values if value is not None)
    if dist.get_rank() == 0:
        for one in means:  # SPG104
            print(one)

def returned(values):
    means = make(values)
    if dist.get_rank() == 0:
        print(sum(means))  # SPG104

def spread(values):
    means: object = make(values)
    if dist.get_rank() == 0:
        print(*means)  # SPG104

def numbered(values):
    means = make(values)
    if dist.get_rank() == 0:
        for position, one in enumerate(means):  # SPG104
            print(position, one)

def written(values, out):
    means = make(values)
    if dist.get_rank() == 0:
        out.write(" ".join(str(one) for one in means))  # SPG104

def of_two(values, weights):
    means = map(lambda value, weight: mean(value) * weight, values, weights)
    if dist.get_rank() == 0:
        print(next(means))  # SPG104

def kept(values):
    means = filter(mean, values)
    if dist.get_rank() == 0:
        print([one for one in means])  # SPG104

def collected(values, known):
    means = make(values)
    if dist.get_rank() == 0:
        found = list(known)
        found.extend(means)  # SPG104
""",
        *ARMS,
    )


def test_consumed_by_all_ranks() -> None:
    """A lazy value that every rank consumes, whatever one rank then does with the result."""
    assert agree(
        MEAN
        + """
def listed(values):
    means = map(mean, values)
    found = list(means)
    if dist.get_rank() == 0:
        print(found)

def at_once(values):
    found = list(map(mean, values))
    total = sum(mean(value) for value in values)
    if dist.get_rank() == 0:
        print(found, total)

def unpacked(values):
    first, second = make(values)
    if dist.get_rank() == 0:
        print(first, second)

def looped(values):
    for one in make(values):
        if dist.get_rank() == 0:
            print(one)

def never(values):
    means = make(values)
    if dist.get_rank() == 0:
        print(means)

def of_names(values):
    names = (str(value) for value in values)
    if dist.get_rank() == 0:
        print(list(names))
    dist.barrier()
""",
        *ARMS,
    )


def test_coroutines() -> None:
    """A coroutine runs where it is awaited, or handed to the loop, and not where it is made."""
    assert agree(
        """
        import asyncio
        import torch.distributed as dist

        async def share(buffer):
            work = dist.broadcast(buffer, src=0, async_op=True)
            await asyncio.sleep(0)
            work.wait()
            return buffer

        async def by_one(buffer):
            task = share(buffer)
            if dist.get_rank() == 0:
                print(await task)  # SPG104
            else:
                task.close()

        async def by_all(buffer):
            task = share(buffer)
            shared = await task
            if dist.get_rank() == 0:
                print(shared)

        async def at_once(buffer):
            shared = await share(buffer)
            if dist.get_rank() == 0:
                print(shared)

        def run_by_one(buffer):
            task = share(buffer)
            if dist.get_rank() == 0:
                asyncio.run(task)  # SPG104

        def run_by_all(buffer):
            task = share(buffer)
            asyncio.run(task)

        def gathered_by_one(buffer):
            task = share(buffer)
            if dist.get_rank() == 0:
                asyncio.get_event_loop().run_until_complete(task)  # SPG104
        """,
        *ARMS,
    )
