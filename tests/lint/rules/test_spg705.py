"""SPG705: collectives before the device is bound."""

from __future__ import annotations

import pytest

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
            torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
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


HEAD = """
import os

import torch
import torch.distributed as dist
"""


def test_global_rank_as_device() -> None:
    """The number of the device is the rank of the launcher or the group: bare, in a text, in a device."""
    assert agree(
        HEAD
        + """
def launched():
    rank = int(os.environ["RANK"])
    torch.cuda.set_device(rank)  # SPG705
    dist.init_process_group("nccl")

class Trainer:
    def __init__(self):
        dist.init_process_group("nccl")
        self.rank = dist.get_rank()
        self.device = torch.device("cuda", self.rank)
        torch.cuda.set_device(self.device)  # SPG705

def bind(number):
    torch.cuda.set_device(f"cuda:{number}")  # SPG705

def through_a_call():
    dist.init_process_group("nccl")
    bind(dist.get_rank())
""",
        "SPG705",
    )


def test_local_number() -> None:
    """The local rank, a remainder, a parameter, a fallback beside the local rank."""
    assert agree(
        HEAD
        + """
def local():
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")

def remainder(per_host):
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank() % per_host)

def told(rank, world_size):
    dist.init_process_group("nccl", rank=rank, world_size=world_size)
    torch.cuda.set_device(rank)

def fallback():
    rank = int(os.environ["RANK"])
    if "LOCAL_RANK" in os.environ:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    else:
        torch.cuda.set_device(rank)
    dist.init_process_group("nccl")
""",
        "SPG705",
    )
    assert agree(
        HEAD
        + """
import torch.multiprocessing as mp

def work(index):
    dist.init_process_group("nccl", rank=index, world_size=2)
    torch.cuda.set_device(dist.get_rank())

mp.spawn(work, nprocs=2)
""",
        "SPG705",
    )
    assert agree(
        HEAD
        + """
def checked():
    dist.init_process_group("nccl")
    assert dist.get_world_size() <= torch.cuda.device_count()
    torch.cuda.set_device(dist.get_rank())
""",
        "SPG705",
    )


UNBOUND = """
    import os

    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    def setup():
        local = int(os.environ["LOCAL_RANK"])
        BIND
        dist.init_process_group(BACKEND)CODE
        return local

    def main():
        local = setup()
        model = DistributedDataParallel(torch.nn.Linear(4, 4).MOVED)
        model(torch.randn(4, 4).MOVED).sum().backward()

    if __name__ == "__main__":
        main()
"""


@pytest.mark.parametrize(
    ("bind", "backend", "moved", "found"),
    [
        ("pass", '"nccl"', "cuda()", True),
        ("pass", 'backend="cpu:gloo,cuda:nccl"', 'to("cuda")', True),
        ("torch.cuda.set_device(local)", '"nccl"', "cuda()", False),
        ("pass", '"nccl", device_id=torch.device("cuda", local)', "cuda()", False),
        ("pass", '"nccl"', "cuda(local)", False),
        ("pass", '"nccl"', 'to(f"cuda:{local}")', False),
        ("pass", '"nccl"', "to(local)", False),
        ("pass", '"gloo"', "cuda()", False),
        ('os.environ["CUDA_VISIBLE_DEVICES"] = str(local)', '"nccl"', "cuda()", False),
        ("import deepspeed", '"nccl"', "cuda()", False),
        ("pass", '"nccl"', "cpu()", False),
    ],
)
def test_no_device_at_all(bind: str, backend: str, moved: str, found: bool) -> None:
    """Every rank of a host takes the first device where a program asks for ``cuda`` and says no number anywhere."""
    source = UNBOUND.replace("BIND", bind).replace("BACKEND", backend).replace("MOVED", moved)
    assert agree(source.replace("CODE", "  # SPG705" if found else ""), "SPG705")
