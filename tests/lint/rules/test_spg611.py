"""SPG611: processes that nobody waits for."""

from __future__ import annotations

from tests.lint.rules.marked import agree

WORK = """
            import multiprocessing
            import os
            import torch.distributed as dist
            import torch.multiprocessing as mp
            from torch.multiprocessing import Process, spawn

            def work(rank, world):
                dist.init_process_group("gloo", rank=rank, world_size=world)
                dist.barrier()
                dist.destroy_process_group()

            def read(path):
                print(os.path.join(path, ", ".join(["a"])))
"""


def test_nobody_joins() -> None:
    """Contexts that are dropped or never read, and processes of a file that joins none."""
    for launch in (
        "mp.spawn(work, args=(world,), nprocs=world, join=False)  # SPG611",
        "spawn(work, (world,), world, join=False)  # SPG611",
        "context = mp.start_processes(work, (world,), world, join=False)  # SPG611",
        "mp.Process(target=work, args=(0, world)).start()  # SPG611",
        "started = [Process(target=work, args=(r, world)) for r in range(world)]  # SPG611",
    ):
        assert agree(
            f"""{WORK}
            def launch(world):
                {launch}
                print("training finished")
            """,
            "SPG611",
        )


def test_processes_of_a_start_method() -> None:
    """A context for a start method makes processes too."""
    assert agree(
        f"""{WORK}
            def launch(world):
                context = mp.get_context("spawn")
                started = [context.Process(target=work, args=(r, world)) for r in range(world)]  # SPG611
                for process in started:
                    process.start()
        """,
        "SPG611",
    )


def test_somebody_joins() -> None:
    """Contexts that are joined, returned or kept, processes that are waited for, and those that do not communicate."""
    for launch in (
        "mp.spawn(work, args=(world,), nprocs=world)",
        "mp.spawn(work, args=(world,), nprocs=world, join=True)",
        "return mp.spawn(work, args=(world,), nprocs=world, join=False)",
        "context = mp.spawn(work, (world,), world, join=False)\n                while not context.join(): pass",
        "started = Process(target=work, args=(0, world)); started.start(); started.join()",
        "started = Process(target=work, args=(0, world)); started.start(); print(started.exitcode)",
        "mp.Process(target=read, args=('x',)).start()",
    ):
        assert agree(
            f"""{WORK}
            def launch(world):
                {launch}
            """,
            "SPG611",
        )
