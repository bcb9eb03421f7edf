"""What most scenarios share."""

from __future__ import annotations

import os
from datetime import timedelta

import torch
import torch.distributed as dist


def start_gloo(timeout_s: float = 300.0) -> int:
    """Initialise the default group from the environment; this rank."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=timedelta(seconds=timeout_s))
    return dist.get_rank()


def restart_gloo(attempt: int) -> None:
    """A new default group of the same ranks: under keys of its own, for the old group's are still there."""
    host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    store = dist.PrefixStore(f"attempt {attempt}", dist.TCPStore(host, port, is_master=False))
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    dist.init_process_group("gloo", store=store, rank=rank, world_size=size)


def say(*words: object) -> None:
    """One line on stdout, at once."""
    print(*words, flush=True)
