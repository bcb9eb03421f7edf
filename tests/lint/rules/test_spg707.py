"""SPG707: ports that each process of a job chooses for itself."""

from __future__ import annotations

from tests.lint.rules.marked import agree


def test_ports_found_by_each_process() -> None:
    """A free port, a random one, one made from the rank; in the environment, by default, in the address."""
    assert agree(
        """
        import os
        import random
        import socket
        from contextlib import closing
        import torch.distributed as dist
        from mytools.net import find_free_port

        def free():
            with closing(socket.socket(socket.AF_INET, socket.SOCK_STREAM)) as s:
                s.bind(("", 0))
                return s.getsockname()[1]

        def by_socket(rank, world_size):
            os.environ["MASTER_PORT"] = str(free())  # SPG707
            dist.init_process_group("gloo", rank=rank, world_size=world_size)

        def by_default(backend):
            rank = int(os.environ["SLURM_PROCID"])
            if "MASTER_PORT" not in os.environ:
                os.environ["MASTER_PORT"] = str(random.randint(20000, 30000))  # SPG707
            os.environ["RANK"] = str(rank)
            dist.init_process_group(backend)

        def by_rank(rank, world_size):
            os.environ["MASTER_PORT"] = str(29500 + dist.get_rank())  # SPG707
            dist.init_process_group("gloo", rank=rank, world_size=world_size)

        def in_the_address(rank, world_size):
            address = f"tcp://127.0.0.1:{find_free_port()}"
            dist.init_process_group("gloo", init_method=address, rank=rank, world_size=world_size)  # SPG707

        def ranks_from_the_launcher():
            os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
            os.environ["MASTER_PORT"] = str(free())  # SPG707
            dist.init_process_group("gloo")

        def by_the_environment(backend):
            os.environ["MASTER_PORT"] = f"{random.randrange(20000, 30000)}"  # SPG707
            dist.init_process_group(backend, init_method="env://")

        class Cluster:
            def __init__(self):
                self.rank = int(os.environ["SLURM_PROCID"])

            def connect(self, size):
                os.environ.setdefault("MASTER_PORT", str(free()))  # SPG707
                dist.init_process_group("nccl", rank=self.rank, world_size=size)
        """,
        "SPG707",
    )


def test_ports_chosen_once() -> None:
    """The parent's choice, a number from the job, a process alone, and a port that is written down are right."""
    assert agree(
        """
        import os
        import socket
        import torch.distributed as dist
        import torch.multiprocessing as mp

        def free():
            with socket.socket() as s:
                s.bind(("", 0))
                return s.getsockname()[1]

        def worker(rank, world_size, port):
            os.environ["MASTER_PORT"] = str(port)
            dist.init_process_group("gloo", rank=rank, world_size=world_size)

        def parent():
            os.environ["MASTER_PORT"] = str(free())
            mp.spawn(worker, args=(4, free()), nprocs=4)

        def by_job(backend):
            os.environ["RANK"] = os.environ["SLURM_PROCID"]
            os.environ["MASTER_PORT"] = str(20000 + int(os.environ["SLURM_JOB_ID"]) % 20000)
            dist.init_process_group(backend)

        def alone():
            os.environ["MASTER_PORT"] = str(free())
            os.environ["RANK"] = "0"
            os.environ["WORLD_SIZE"] = "1"
            dist.init_process_group("gloo")

        def alone_by_arguments():
            address = f"tcp://127.0.0.1:{free()}"
            dist.init_process_group("gloo", init_method=address, rank=0, world_size=1)

        def only_without_a_launcher():
            if "MASTER_PORT" not in os.environ:
                os.environ["MASTER_PORT"] = str(free())
            dist.init_process_group("gloo")

        def only_by_default():
            os.environ.setdefault("MASTER_PORT", str(free()))
            dist.init_process_group("gloo")

        def written_down(rank, world_size):
            os.environ["MASTER_PORT"] = "29500"
            dist.init_process_group("gloo", rank=rank, world_size=world_size)
        """,
        "SPG707",
    )


def test_line_of_the_address() -> None:
    """Of a call over several lines the one that names the address is reported."""
    assert agree(
        """
        import os
        import socket

        import torch.distributed as dist

        def free_port():
            with socket.socket() as s:
                s.bind(("", 0))
                return s.getsockname()[1]

        def connect(host):
            dist.init_process_group(
                "gloo",
                init_method=f"tcp://{host}:{free_port()}",  # SPG707
                rank=int(os.environ["RANK"]),
                world_size=int(os.environ["WORLD_SIZE"]),
            )
        """,
        "SPG707",
    )


def test_what_stands_behind_the_environment() -> None:
    """Torch reads the address from the environment, whatever stands behind ``env://``; behind ``tcp://`` it counts."""
    assert agree(
        """
        import os
        import socket
        import torch.distributed as dist

        def free_port():
            with socket.socket() as one:
                one.bind(("", 0))
                return one.getsockname()[1]

        def by_environment(rank, world):
            where = f"env://localhost:{free_port()}"
            dist.init_process_group("nccl", init_method=where, rank=rank, world_size=world)

        def by_address(rank, world):
            where = f"tcp://localhost:{free_port()}"
            dist.init_process_group("nccl", init_method=where, rank=rank, world_size=world)  # SPG707

        def set_too(rank, world):
            os.environ["MASTER_PORT"] = str(free_port())  # SPG707
            dist.init_process_group("nccl", init_method=f"env://localhost", rank=rank, world_size=world)
        """,
        "SPG707",
    )
