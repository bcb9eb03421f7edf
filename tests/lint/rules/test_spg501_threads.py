"""SPG501: what is said behind the `join` of a thread whose error nobody hears of."""

from __future__ import annotations

from tests.lint.rules.marked import agree


def test_pointers_behind_a_join() -> None:
    """A thread of a method, of a function, a renamed pointer, the class by another name."""
    assert agree(
        """
        import os
        import threading
        from pathlib import Path
        from threading import Thread as Worker

        import torch
        import torch.distributed as dist

        def write(folder, shard):
            torch.save(shard, f"{folder}/{dist.get_rank()}.pt")

        class Store:
            def __init__(self, root):
                self.root, self.rank, self.thread = Path(root), dist.get_rank(), None
            def write(self, step, shard):
                torch.save(shard, self.root / f"{step}-{self.rank}.pt")
            def start(self, step, shard):
                self.thread = threading.Thread(target=self.write, args=(step, shard))
                self.thread.start()
            def finish(self, step):
                self.thread.join()  # SPG501
                dist.barrier()
                if self.rank == 0:
                    (self.root / "latest").write_text(str(step))

        def run(root, shard):
            store = Store(root)
            store.start(1, shard)
            store.finish(1)

        def plain(folder, shard, step):
            worker = Worker(target=write, args=(folder, shard))
            worker.start()
            worker.join()  # SPG501
            dist.barrier()
            if dist.get_rank() == 0:
                os.replace(f"{folder}/new", f"{folder}/latest")
            dist.barrier()
        """,
        "SPG501",
    )


def test_threads_that_tell() -> None:
    """An executor's future, a thread that catches its error, files that are looked for, no pointer at all."""
    assert agree(
        """
        import os
        import threading
        from concurrent.futures import ThreadPoolExecutor
        from pathlib import Path

        import torch
        import torch.distributed as dist

        def write(folder, shard):
            torch.save(shard, f"{folder}/{dist.get_rank()}.pt")

        def by_future(folder, shard):
            with ThreadPoolExecutor(1) as pool:
                job = pool.submit(write, folder, shard)
                job.result()
            dist.barrier()
            if dist.get_rank() == 0:
                Path(folder, "latest").write_text("1")
            dist.barrier()

        def catching(folder, shard, errors):
            try:
                write(folder, shard)
            except Exception as error:
                errors.append(error)

        def caught(folder, shard):
            errors = []
            worker = threading.Thread(target=catching, args=(folder, shard, errors))
            worker.start()
            worker.join()
            reports = [None] * dist.get_world_size()
            dist.all_gather_object(reports, errors)
            if any(reports):
                raise RuntimeError(reports)
            if dist.get_rank() == 0:
                Path(folder, "latest").write_text("1")
            dist.barrier()

        def looked_for(folder, shard):
            worker = threading.Thread(target=write, args=(folder, shard))
            worker.start()
            worker.join()
            if not os.path.exists(f"{folder}/{dist.get_rank()}.pt"):
                raise RuntimeError(folder)
            dist.barrier()
            if dist.get_rank() == 0:
                Path(folder, "latest").write_text("1")
            dist.barrier()

        def unmarked(folder, shard):
            worker = threading.Thread(target=write, args=(folder, shard))
            worker.start()
            worker.join()
            dist.barrier()
        """,
        "SPG501",
    )


def test_known_limits() -> None:
    """A function of the library itself as the thread's target."""
    assert agree(
        """
        import threading
        from pathlib import Path

        import torch
        import torch.distributed as dist

        def direct(folder, shard):
            worker = threading.Thread(target=torch.save, args=(shard, f"{folder}/{dist.get_rank()}.pt"))
            worker.start()
            worker.join()
            dist.barrier()
            if dist.get_rank() == 0:
                Path(folder, "latest").write_text("1")
            dist.barrier()
        """,
        "SPG501",
    )
