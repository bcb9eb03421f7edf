"""SPG108: collectives in background threads."""

from __future__ import annotations

from tests.lint.rules.marked import agree

THREADS = ("SPG101", "SPG104", "SPG108")


def test_ways_to_start_a_thread() -> None:
    """Executors, threads, subclasses of Thread: reported at the collective that runs there."""
    for start in (
        "pool.submit(collect, rows)",
        "pool.map(collect, [rows])",
        "threading.Thread(target=collect, args=(rows,)).start()",
        "threading.Thread(target=lambda: collect(rows)).start()",
        "threading.Timer(5, collect).start()",
        "task = asyncio.create_task(asyncio.to_thread(collect, rows))",
        "Collector().start()",
    ):
        assert agree(
            f"""
            import asyncio
            import threading
            from concurrent.futures import ThreadPoolExecutor
            import torch.distributed as dist

            def collect(rows):
                dist.all_gather_object(rows, 1)  # SPG108

            class Collector(threading.Thread):
                def run(self):
                    collect([])

            async def main(rows):
                dist.barrier()
                pool = ThreadPoolExecutor()
                {start}
            """,
            *THREADS,
        )


def test_local_work_and_own_groups_are_silent() -> None:
    """Threads may do local work, and communicate on a group of their own."""
    assert agree(
        """
        import asyncio
        from concurrent.futures import ThreadPoolExecutor
        import torch.distributed as dist

        def write(rows):
            print(rows)

        async def awaited(x):
            await asyncio.to_thread(dist.all_reduce, x)
            dist.barrier()

        def background(rows, group):
            dist.all_gather_object(rows, 1, group=group)

        def main(rows):
            own = dist.new_group(backend="gloo")
            dist.all_gather_object(rows, 1)
            pool = ThreadPoolExecutor()
            pool.submit(write, rows)
            pool.submit(background, rows, own)
        """,
        *THREADS,
    )
