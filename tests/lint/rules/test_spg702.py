"""SPG702: ranks computed by hand."""

from __future__ import annotations

from tests.lint.rules.marked import agree


def test_host_and_local_rank() -> None:
    """A rank made of the number of the host and the local rank."""
    assert agree(
        """
        import os

        import torch
        import torch.distributed as dist

        def main(size):
            rank = int(os.environ["GROUP_RANK"]) * 8 + int(os.environ["LOCAL_RANK"])
            dist.init_process_group("nccl", rank=rank, world_size=size)  # SPG702
        """,
        "SPG702",
    )


def test_launcher_rank() -> None:
    """The launcher's rank, or none, is silent."""
    assert agree(
        """
        import os

        import torch
        import torch.distributed as dist

        def main(size):
            dist.init_process_group("nccl", rank=int(os.environ["RANK"]), world_size=size)
            dist.init_process_group("nccl")
        """,
        "SPG702",
    )


def test_miss_parameter() -> None:
    """Known miss: a rank that a parameter brings."""
    assert agree(
        """
        import os

        import torch
        import torch.distributed as dist

        def main(node, local, size):
            dist.init_process_group("nccl", rank=node * 8 + local, world_size=size)
        """,
        "SPG702",
    )
