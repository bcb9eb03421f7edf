"""SPG708: the local rank given as the rank."""

from __future__ import annotations

from tests.lint.rules.marked import agree


def test_local_ranks_in_a_world_of_several_hosts() -> None:
    """From the environment and from arguments, with a launcher's world size or a product of hosts."""
    assert agree(
        """
        import os
        import torch.distributed as dist

        def by_environment():
            local_rank = int(os.environ["LOCAL_RANK"])
            dist.init_process_group("nccl", rank=local_rank, world_size=int(os.environ["WORLD_SIZE"]))  # SPG708

        def by_arguments(args):
            dist.init_process_group(
                backend="nccl",
                world_size=args.nnodes * args.gpus_per_node,
                rank=args.local_rank,  # SPG708
            )
        """,
        "SPG708",
    )


def test_finding_stands_where_the_rank_is_given() -> None:
    """By keyword, by position, or, where it is not written there, at the call."""
    assert agree(
        """
        import os
        from contextlib import contextmanager
        import torch.distributed as dist

        @contextmanager
        def joined(backend):
            place = int(os.environ.get("LOCAL_RANK", "0"))
            total = int(os.environ.get("WORLD_SIZE", "1"))
            dist.init_process_group(
                backend,
                rank=place,  # SPG708
                world_size=total,
            )
            yield place

        def by_position(timeout):
            dist.init_process_group(
                "gloo",
                "env://",
                timeout,
                int(os.environ["WORLD_SIZE"]),
                int(os.environ["LOCAL_RANK"]),  # SPG708
            )

        def by_options():
            options = {"rank": int(os.environ["LOCAL_RANK"]), "world_size": int(os.environ["WORLD_SIZE"])}
            dist.init_process_group("gloo", **options)  # SPG708
        """,
        "SPG708",
    )


def test_global_ranks_and_single_hosts() -> None:
    """A global rank, a sum of host and local rank, and a world as large as one host are right."""
    assert agree(
        """
        import os
        import torch
        import torch.distributed as dist

        def by_environment():
            dist.init_process_group("nccl", rank=int(os.environ["RANK"]), world_size=int(os.environ["WORLD_SIZE"]))

        def by_arguments(args):
            rank = args.node_rank * args.gpus_per_node + args.local_rank
            dist.init_process_group("nccl", world_size=args.nnodes * args.gpus_per_node, rank=rank)

        def on_one_host(local_rank):
            dist.init_process_group("nccl", rank=local_rank, world_size=torch.cuda.device_count())

        def spawned(local_rank, world_size):
            dist.init_process_group("gloo", rank=local_rank, world_size=world_size)
        """,
        "SPG708",
    )


def test_numbers_of_spawned_processes() -> None:
    """A product in the function, among the arguments of the call, in an attribute; under the name of a rank."""
    assert agree(
        """
        import torch.distributed as dist
        import torch.multiprocessing as mp
        from torch.multiprocessing import start_processes

        def join(place, size):
            dist.init_process_group("gloo", world_size=size, rank=place)  # SPG708

        def of_two_numbers(index, args):
            dist.init_process_group(
                "gloo",
                world_size=args.nodes * args.procs,
                rank=index,  # SPG708
            )

        def named_rank(rank, world):
            dist.init_process_group("gloo", "env://", None, world, rank)  # SPG708

        def kept(gpu, args):
            join(gpu, args.total)

        def main(args):
            args.total = args.gpus * args.num_machines
            mp.spawn(of_two_numbers, args=(args,), nprocs=args.procs)
            mp.spawn(named_rank, nprocs=args.gpus, args=(args.gpus * args.nnodes,))
            start_processes(kept, (args,), args.gpus)
        """,
        "SPG708",
    )


def test_numbers_of_processes_of_one_host() -> None:
    """All processes are started by one call, the host's number is added, or nothing speaks of hosts."""
    assert agree(
        """
        import torch.distributed as dist
        import torch.multiprocessing as mp

        def one_host(rank, world):
            dist.init_process_group("gloo", world_size=world, rank=rank)

        def kept(rank, args):
            dist.init_process_group("gloo", world_size=args.world_size, rank=rank)

        def offset(index, args):
            rank = args.node_rank * args.procs + index
            dist.init_process_group("gloo", world_size=args.nodes * args.procs, rank=rank)

        def changed(rank, args):
            rank += args.node_rank * args.procs
            dist.init_process_group("gloo", world_size=args.nodes * args.procs, rank=rank)

        def plain(rank, args):
            dist.init_process_group("gloo", world_size=args.rows * args.columns, rank=rank)

        def called(rank, args):
            dist.init_process_group("gloo", world_size=args.nodes * args.procs, rank=rank)

        def main(args):
            args.world_size = args.gpus * args.nodes
            mp.spawn(one_host, args=(args.procs,), nprocs=args.procs)
            mp.spawn(one_host, args=(args.nodes * args.procs,), nprocs=args.nodes * args.procs)
            mp.spawn(kept, args=(args,), nprocs=args.world_size)
            mp.spawn(offset, args=(args,), nprocs=args.procs)
            mp.spawn(changed, args=(args,), nprocs=args.procs)
            mp.spawn(plain, args=(args,), nprocs=args.rows * args.columns)
            called(args.node_rank * args.procs, args)
        """,
        "SPG708",
    )
