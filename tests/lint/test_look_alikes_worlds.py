"""Ranks beyond the world: they leave before the others make a group that has no place for them."""

from __future__ import annotations

from tests.lint.rules.marked import agree


def test_ranks_beyond_the_world() -> None:
    """As many places as ranks stay: nobody waits for those that left. Any other number of places is a hang."""
    assert agree(
        """
        import os
        import sys

        import torch.distributed as dist

        def asked(args):
            if int(os.getenv("RANK", "0")) >= args.world_size:
                exit(0)
            dist.init_process_group("nccl", rank=int(os.environ["RANK"]), world_size=args.world_size)
            dist.barrier()

        def fixed():
            rank = int(os.environ["RANK"])
            if rank > 7:
                print("not needed")
                return
            dist.init_process_group("nccl", rank=rank, world_size=8)
            dist.barrier()

        def each(args):
            rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
            if rank % args.tp != 0:
                sys.exit(0)
            os.environ["RANK"] = str(rank // args.tp)
            os.environ["WORLD_SIZE"] = str(world // args.tp)
            size = int(os.getenv("WORLD_SIZE", "1"))
            dist.init_process_group("nccl", world_size=size, rank=int(os.getenv("RANK", "0")))
            dist.barrier()

        def one_too_many(args):
            if int(os.getenv("RANK", "0")) > args.world_size:
                exit(0)  # SPG102
            dist.init_process_group("nccl", rank=int(os.environ["RANK"]), world_size=args.world_size)
            dist.barrier()

        def of_launcher(args):
            if int(os.getenv("RANK", "0")) >= args.world_size:
                exit(0)  # SPG102
            dist.init_process_group("nccl")
            dist.barrier()

        def still_of_launcher(args):
            rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
            if rank % args.tp != 0:
                sys.exit(0)  # SPG102
            dist.init_process_group("nccl", world_size=world, rank=rank)
            dist.barrier()

        def too_late(args):
            dist.init_process_group("nccl", rank=int(os.environ["RANK"]), world_size=args.world_size)
            if int(os.getenv("RANK", "0")) >= 3:
                exit(0)  # SPG102
            dist.barrier()

        def fewer_places(args):
            rank = int(os.environ["RANK"])
            if rank > 3:
                return  # SPG102
            dist.init_process_group("nccl", rank=rank, world_size=8)
            dist.barrier()
        """,
        "SPG102",
    )
