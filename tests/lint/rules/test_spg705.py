"""SPG705: collectives before the device is bound."""

from __future__ import annotations

from tests.lint.rules.marked import agree


def test_bound_too_late() -> None:
    """The first operation of an NCCL group before the binding."""
    assert agree(
        """
        import os

        import torch
        import torch.distributed as dist

        def main(total):
            dist.init_process_group("nccl")
            dist.barrier()  # SPG705
            torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
            dist.all_reduce(total)

        def keyword(total):
            dist.init_process_group(backend="nccl")
            dist.all_reduce(total)  # SPG705
            torch.cuda.set_device(dist.get_rank() % torch.cuda.device_count())
        """,
        "SPG705",
    )


def test_bound_in_time() -> None:
    """Bound first, named in the init call, another backend, or no operation between."""
    assert agree(
        """
        import os

        import torch
        import torch.distributed as dist

        def first(total):
            torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
            dist.init_process_group("nccl")
            dist.barrier()

        def named(total, device):
            dist.init_process_group("nccl", device_id=device)
            dist.barrier()
            torch.cuda.set_device(device)

        def gloo(total, device):
            dist.init_process_group("gloo")
            dist.barrier()
            torch.cuda.set_device(device)

        def between(total):
            dist.init_process_group("nccl")
            torch.cuda.set_device(dist.get_rank())
            dist.barrier()
        """,
        "SPG705",
    )


def test_miss_never_bound() -> None:
    """Known miss: a program that never binds its device."""
    assert agree(
        """
        import os

        import torch
        import torch.distributed as dist

        def main():
            dist.init_process_group("nccl")
            dist.barrier()
        """,
        "SPG705",
    )
