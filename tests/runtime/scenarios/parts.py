"""What most scenarios share."""

from __future__ import annotations

from datetime import timedelta

import torch
import torch.distributed as dist


def start_gloo(timeout_s: float = 300.0) -> int:
    """Initialise the default group from the environment; this rank."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=timedelta(seconds=timeout_s))
    return dist.get_rank()


def say(*words: object) -> None:
    """One line on stdout, at once."""
    print(*words, flush=True)
