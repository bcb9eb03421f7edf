"""The harness itself."""

from __future__ import annotations

import os
import sys
import time

import torch
import torch.distributed as dist

from .parts import say, start_gloo


def reduce_and_exit(code: int = 0, hang_on: int = -1, leave_child: bool = False) -> None:
    rank = start_gloo()
    total = torch.ones(1)
    dist.all_reduce(total)
    say("total", int(total))
    if leave_child and os.fork() == 0:
        time.sleep(60)
    if rank == hang_on:
        time.sleep(60)
    dist.destroy_process_group()
    if rank == 1:
        raise OSError("rank 1")
    sys.exit(code)
