"""SPG703: programs with two launchers."""

from __future__ import annotations

from tests.lint.rules.marked import agree


def test_spawn_in_a_launcher() -> None:
    """Spawned processes that take the launcher's world size."""
    assert agree(
        """
        import os

        import torch.distributed as dist
        import torch.multiprocessing as mp

        def worker(index, size):
            rank = int(os.environ["RANK"]) + index
            dist.init_process_group("gloo", rank=rank, world_size=int(os.environ["WORLD_SIZE"]))
            dist.destroy_process_group()

        if __name__ == "__main__":
            mp.spawn(worker, args=(3,), nprocs=int(os.environ["LOCAL_WORLD_SIZE"]))  # SPG703
        """,
        "SPG703",
    )


def test_one_launcher() -> None:
    """Spawning with ranks of its own, or hosts counted by the environment, is silent."""
    assert agree(
        """
        import os

        import torch
        import torch.distributed as dist
        import torch.multiprocessing as mp

        def worker(rank, world, port):
            dist.init_process_group("gloo", rank=rank, world_size=world)

        def per_host(index, per):
            world = int(os.environ["WORLD_SIZE"]) * per
            dist.init_process_group("nccl", rank=int(os.environ["RANK"]) * per + index, world_size=world)

        if __name__ == "__main__":
            mp.spawn(worker, args=(2, 1), nprocs=2)
            mp.spawn(per_host, args=(torch.cuda.device_count(),), nprocs=torch.cuda.device_count())
        """,
        "SPG703",
    )


def test_process_objects() -> None:
    """Processes may be started one by one."""
    assert agree(
        """
        import os

        import torch.distributed as dist
        import torch.multiprocessing as mp

        def worker(index):
            rank = int(os.environ["RANK"]) + index
            dist.init_process_group("gloo", rank=rank, world_size=int(os.environ["WORLD_SIZE"]))

        if __name__ == "__main__":
            for index in range(2):
                mp.Process(target=worker, args=(index,)).start()  # SPG703
        """,
        "SPG703",
    )


def test_miss_other_program() -> None:
    """Known miss: processes that are programs of their own."""
    assert agree(
        """
        import os
        import subprocess
        import sys

        import torch.distributed as dist

        def worker(index):
            rank = int(os.environ["RANK"]) + index
            dist.init_process_group("gloo", rank=rank, world_size=int(os.environ["WORLD_SIZE"]))

        if __name__ == "__main__":
            subprocess.Popen([sys.executable, "worker.py"])
        """,
        "SPG703",
    )
