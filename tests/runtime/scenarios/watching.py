"""Training that is partly classified, in strict mode."""

from __future__ import annotations

from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import spmdguard

from .parts import say, start_gloo


@spmdguard.collective
def decorated(model: DistributedDataParallel) -> None:
    dist.all_reduce(torch.ones(1))
    model(torch.ones(1, 2)).sum().backward()
    Path("inside a collective").write_text("x")


@spmdguard.rank_local
def local_file() -> None:
    Path(f"local{dist.get_rank()}").write_text("x")


def write(name: str) -> None:
    Path(name).write_text("x")


def watched() -> None:
    """Says what strict mode reports, the line of each as text."""
    rank = start_gloo(60)
    model = DistributedDataParallel(torch.nn.Linear(2, 1))
    with spmdguard.strict_mode() as report:
        decorated(model)
        local_file()
        for _ in range(3):
            dist.all_reduce(torch.ones(1))
        model(torch.ones(1, 2)).sum().backward()
        dist.new_group()
        spmdguard.barrier()
        spmdguard.sync_should_stop()
        spmdguard.save_checkpoint("saved", step=1, save_state=lambda path: None)
        write(f"on every rank {rank}")
        if rank == 0:
            for _ in range(1 + rank):
                Path("main only").write_text("x")
    say(report.compared)
    for each in (*report.collectives, *report.main_only):
        say(each.what, "|", each.place.partition(":")[2].partition(" ")[2], "|", each.counts)
    spmdguard.destroy_process_group()
