"""SPG706: the number of devices taken for the world size."""

from __future__ import annotations

from tests.lint.rules.marked import agree


def test_launcher_rank_host_size() -> None:
    """The launcher's rank with the host's number of devices."""
    assert agree(
        """
        import os

        import torch
        import torch.distributed as dist

        def main():
            rank = int(os.environ["RANK"])
            size = torch.cuda.device_count()
            dist.init_process_group("nccl", rank=rank, world_size=size)  # SPG706
        """,
        "SPG706",
    )


def test_other_sizes() -> None:
    """The environment's size, a product, or a spawned rank is silent."""
    assert agree(
        """
        import os

        import torch
        import torch.distributed as dist

        def whole():
            dist.init_process_group("nccl", rank=int(os.environ["RANK"]), world_size=int(os.environ["WORLD_SIZE"]))

        def product(hosts):
            size = hosts * torch.cuda.device_count()
            dist.init_process_group("nccl", rank=int(os.environ["RANK"]), world_size=size)

        def spawned(rank):
            dist.init_process_group("nccl", rank=rank, world_size=torch.cuda.device_count())
        """,
        "SPG706",
    )


def test_miss_url() -> None:
    """Known miss: a size that is part of the address."""
    assert agree(
        """
        import os

        import torch
        import torch.distributed as dist

        def main():
            size = torch.cuda.device_count()
            dist.init_process_group("nccl", init_method=f"env://?world_size={size}")
        """,
        "SPG706",
    )


def test_sampler_of_the_whole_job() -> None:
    """A sampler that divides among the devices of this host."""
    assert agree(
        """
        import torch
        import torch.distributed as dist
        from torch.utils.data import DistributedSampler

        def make(data):
            size = torch.cuda.device_count()
            return DistributedSampler(data, num_replicas=size, rank=dist.get_rank())  # SPG706
        """,
        "SPG706",
    )


def test_devices_times_the_hosts_of_torchrun() -> None:
    """torchrun says how many processes it has started, which may be fewer than there are devices."""
    assert agree(
        """
        import os

        import torch
        import torch.distributed as dist
        from torch.utils.data import DistributedSampler

        def join():
            devices = torch.cuda.device_count()
            rank = int(os.environ["RANK"])
            size = int(os.environ["GROUP_WORLD_SIZE"]) * devices
            dist.init_process_group("nccl", rank=rank, world_size=size)  # SPG706
            return DistributedSampler([], num_replicas=size, rank=dist.get_rank())  # SPG706

        def started(local):
            rank = int(os.environ["GROUP_RANK"]) * torch.cuda.device_count() + local
            size = int(os.environ["GROUP_WORLD_SIZE"]) * torch.cuda.device_count()
            dist.init_process_group("nccl", rank=rank, world_size=size)

        def told():
            per_host = int(os.environ["LOCAL_WORLD_SIZE"])
            size = int(os.environ["GROUP_WORLD_SIZE"]) * per_host
            dist.init_process_group("nccl", rank=int(os.environ["RANK"]), world_size=size)
        """,
        "SPG706",
    )


def test_numbers_of_hosts_and_of_one_hosts_processes() -> None:
    """What the launcher counts by hosts, or on one host, is not the number of all processes."""
    assert agree(
        """
        import os

        import torch.distributed as dist
        from torch.utils.data import DistributedSampler

        def slurm(name):
            return int(os.environ[f"SLURM_{name}"])

        class Job:
            def __init__(self):
                self.rank = slurm("PROCID")
                self.size = slurm("JOB_NUM_NODES")

            def join(self):
                dist.init_process_group("gloo", rank=self.rank, world_size=self.size)  # SPG706

        def plain():
            size = int(os.environ.get("SLURM_NNODES", "1"))
            dist.init_process_group("gloo", rank=int(os.environ["SLURM_PROCID"]), world_size=size)  # SPG706

        def of_one_host(data):
            dist.init_process_group("gloo")
            size = int(os.getenv("LOCAL_WORLD_SIZE"))
            return DistributedSampler(data, num_replicas=size, rank=dist.get_rank())  # SPG706

        def told():
            os.environ["RANK"] = os.environ["SLURM_PROCID"]
            os.environ["WORLD_SIZE"] = os.environ["SLURM_NNODES"]  # SPG706
            dist.init_process_group("gloo")
        """,
        "SPG706",
    )


def test_right_numbers_of_hosts() -> None:
    """All tasks, one process for each host, hosts times processes, and spawned ranks are silent."""
    assert agree(
        """
        import os

        import torch
        import torch.distributed as dist
        import torch.multiprocessing as mp

        def slurm(name):
            return int(os.environ["SLURM_%s" % name])

        def tasks():
            dist.init_process_group("gloo", rank=slurm("PROCID"), world_size=slurm("NTASKS"))

        def one_for_each_host():
            dist.init_process_group("gloo", rank=slurm("NODEID"), world_size=slurm("NNODES"))

        def told():
            os.environ["RANK"] = os.environ["SLURM_NODEID"]
            os.environ["WORLD_SIZE"] = os.environ["SLURM_NNODES"]
            dist.init_process_group("gloo")

        def product():
            size = slurm("NNODES") * slurm("NTASKS_PER_NODE")
            dist.init_process_group("gloo", rank=slurm("PROCID"), world_size=size)

        def spawned(local):
            devices = torch.cuda.device_count()
            rank = slurm("PROCID") * devices + local
            dist.init_process_group("nccl", rank=rank, world_size=slurm("NNODES") * devices)

        def within_a_host():
            rank = int(os.environ["LOCAL_RANK"])
            dist.init_process_group("gloo", rank=rank, world_size=int(os.environ["LOCAL_WORLD_SIZE"]))
        """,
        "SPG706",
    )
