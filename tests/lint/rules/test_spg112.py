"""SPG112: collectives at a moment that ranks do not share."""

from __future__ import annotations

import pytest

from tests.lint.rules.marked import agree


def test_exit_handlers() -> None:
    """Functions, methods, lambdas and partial calls handed to ``atexit`` or ``weakref.finalize``."""
    for register in (
        "atexit.register(leave)",
        "atexit.register(lambda: leave())",
        "atexit.register(functools.partial(report, [0]))",
        "atexit.register(report, [0])",
        "atexit.register(Board().close)",
        "weakref.finalize(owner, leave)",
    ):
        assert agree(
            f"""
            import atexit
            import functools
            import weakref
            import torch.distributed as dist

            def meet():
                dist.barrier()  # SPG112

            def leave():
                meet()
                dist.destroy_process_group()

            def report(rows):
                meet()

            class Board:
                def close(self):
                    meet()

            def main(owner):
                {register}
            """,
            "SPG112",
        )


def test_decorated_exit_handler() -> None:
    """``@atexit.register`` makes a function an exit handler."""
    assert agree(
        """
        import atexit
        from atexit import register as at_the_end
        import torch.distributed as dist

        @atexit.register
        def leave():
            dist.barrier()  # SPG112

        @at_the_end
        def report():
            dist.all_gather_object([None], 1)  # SPG112
        """,
        "SPG112",
    )


def test_destructors() -> None:
    """``__del__``, by its own call or through a method, on any group."""
    assert agree(
        """
        import torch.distributed as dist

        class Meter:
            def __init__(self, count, group):
                self.count, self.group = count, group

            def flush(self):
                dist.all_reduce(self.count, group=self.group)  # SPG112

            def __del__(self):
                self.flush()

        class Lock:
            def __del__(self):
                dist.barrier()  # SPG112
        """,
        "SPG112",
    )


def test_loader_workers() -> None:
    """Items, their order, batches and the start of a worker are the worker's."""
    assert agree(
        """
        import torch.distributed as dist
        from torch.utils.data import DataLoader, Dataset, IterableDataset, Subset

        class Items(Dataset):
            def __getitem__(self, index):
                dist.broadcast(self.rows, src=0)  # SPG112
                return self.rows[index]

        class Stream(IterableDataset):
            def __iter__(self):
                for row in self.rows:
                    dist.all_reduce(row)  # SPG112
                    yield row

        def joined(rows):
            dist.barrier()  # SPG112
            return rows

        def start(worker):
            seeds = [None]
            dist.broadcast_object_list(seeds)  # SPG112

        def main(rows, workers):
            DataLoader(Subset(Items(), range(4)), num_workers=workers)
            DataLoader(Stream(), 8, num_workers=2)
            DataLoader(rows, num_workers=2, collate_fn=joined)
            DataLoader(rows, 8, False, None, None, 4, worker_init_fn=start)
        """,
        "SPG112",
    )


def test_local_work_is_silent() -> None:
    """Leaving the group at exit, local clean-up, and what the main process runs itself."""
    assert agree(
        """
        import atexit
        import torch.distributed as dist
        from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info

        class Items(Dataset):
            def __init__(self, rows):
                dist.broadcast(rows, src=0)
                self.rows = rows

            def __getitem__(self, index):
                return self.rows[index] + dist.get_rank()

        class Guarded(IterableDataset):
            def __iter__(self):
                if get_worker_info() is None:
                    dist.barrier()
                yield 1

        class Here(IterableDataset):
            def __iter__(self):
                dist.barrier()
                yield 1

        class Book:
            def close(self):
                dist.barrier()

            def __del__(self):
                print("closed")

        def seed(worker):
            print(worker)

        def main(rows):
            atexit.register(dist.destroy_process_group)
            atexit.register(print, "done")
            for one in DataLoader(Items(rows), num_workers=2, worker_init_fn=seed):
                dist.all_reduce(one)
            DataLoader(Guarded(), num_workers=2)
            DataLoader(Here(), num_workers=0)
            DataLoader(Here())
            Book().close()
        """,
        "SPG112",
    )


COROUTINES = """
    import asyncio
    from asyncio import create_task, gather

    import torch.distributed as dist

    async def load(path):
        return await asyncio.to_thread(open(path).read)

    async def part(path, x):
        rows = await load(path)
        dist.all_reduce(x)CODE
        return rows

    async def first(path, x):
        dist.all_reduce(x)
        return await load(path)

    async def plain(path, x):
        return await load(path)

    async def main(paths, x):
        RUN

    asyncio.run(main(["a", "b"], None))
"""


@pytest.mark.parametrize(
    "run",
    [
        "await asyncio.gather(part('a', x), part('b', x))",
        "await gather(*(part(path, x) for path in paths))",
        "await gather(*[part(path, x) for path in paths])",
        "a = part('a', x)\n        b = part('b', x)\n        await gather(a, b)",
        "a = create_task(part('a', x))\n        b = create_task(part('b', x))\n        await a\n        await b",
        "tasks = [create_task(part(path, x)) for path in paths]\n        await gather(*tasks)",
        "async with asyncio.TaskGroup() as group:\n            group.create_task(part('a', x))\n"
        "            group.create_task(part('b', x))",
    ],
)
def test_coroutines_at_once(run: str) -> None:
    """Gathered, as tasks, in a group: whichever file comes first decides whose collective is first."""
    assert agree(COROUTINES.replace("CODE", "  # SPG112").replace("RUN", run), "SPG112")


@pytest.mark.parametrize(
    "run",
    [
        "await part('a', x)\n        await part('b', x)",
        "await gather(part('a', x), plain('b', x))",
        "await gather(first('a', x), first('b', x))",
        "await gather(first('a', x), part('b', x))",
        "await gather(*(plain(path, x) for path in paths))\n        dist.all_reduce(x)",
        "await create_task(part('a', x))\n        await create_task(part('b', x))",
        "a = create_task(part('a', x))\n        await a\n        b = create_task(part('b', x))\n        await b",
        "for path in paths:\n            await part(path, x)",
    ],
)
def test_coroutines_in_order(run: str) -> None:
    """One after another, one alone that communicates, or collectives before anything is awaited."""
    assert agree(COROUTINES.replace("CODE", "").replace("RUN", run), "SPG112")
