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
