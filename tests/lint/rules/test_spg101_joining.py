"""SPG101: ranks that join the process group alone."""

from __future__ import annotations

from tests.lint.rules.marked import agree


def test_some_ranks_join() -> None:
    """The others come to a collective without a group."""
    assert agree(
        """
        import os

        import deepspeed
        import torch.distributed as dist

        def join_first():
            rank = int(os.environ["LOCAL_RANK"])
            if rank == 0:
                dist.init_process_group("nccl")  # SPG101
            return rank

        def main(x):
            join_first()
            dist.all_reduce(x)

        def in_place(x):
            rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
            if rank != 0:
                pass
            else:
                dist.init_process_group("gloo", rank=rank, world_size=world)  # SPG101
            dist.barrier()

        class Job:
            def __init__(self):
                self.rank = int(os.environ["RANK"])

            def start(self):
                if self.rank % 2:
                    return
                if self.rank < 2:
                    deepspeed.init_distributed()  # SPG101

        def run(x):
            Job().start()
            dist.all_reduce(x)
        """,
        "SPG101",
    )


def test_all_join_in_the_end() -> None:
    """Each rank in its own arm, ranks that use nothing, worlds of other sizes, tests that always hold."""
    assert agree(
        """
        import os

        import torch.distributed as dist

        def each(x):
            rank = int(os.environ["RANK"])
            if rank == 0:
                dist.init_process_group("gloo", init_method="env://")
            else:
                dist.init_process_group("gloo")
            dist.all_reduce(x)

        def those_that_leave(x):
            rank = int(os.environ["RANK"])
            if rank > 1:
                return
            if rank < 2:
                dist.init_process_group("gloo")
            dist.all_reduce(x)

        def trainers_only(x, serve):
            rank = int(os.environ["RANK"])
            if rank == 0:
                serve()
            else:
                dist.init_process_group("gloo", rank=rank - 1, world_size=3)

        def two_ways(x, serve):
            rank = int(os.environ["RANK"])
            if rank == 0:
                dist.init_process_group("gloo")
            else:
                serve()

        def launched(x):
            rank = int(os.environ.get("RANK", "-1"))
            if rank >= 0:
                dist.init_process_group("gloo")
            dist.all_reduce(x)

        def where_there_is_one(x):
            rank = int(os.environ["RANK"])
            if not dist.is_initialized():
                dist.init_process_group("gloo")
            if rank == 0:
                print(rank)
            dist.all_reduce(x)

        def twice(x):
            rank = int(os.environ["RANK"])
            if rank == 0 and not dist.is_initialized():
                dist.init_process_group("gloo")
            if not dist.is_initialized():
                dist.init_process_group("gloo")
            dist.all_reduce(x)
        """,
        "SPG101",
    )
