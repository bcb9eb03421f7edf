"""Streaming mean of sensor rows, each process keeps a copy of its part."""
import os
import tempfile
from datetime import timedelta

import torch
import torch.distributed as dist
from spmdguard import deferred_error, deferring, raise_if_deferred_error, sync_should_stop


class Mean:
    def __init__(self, folder: str):
        self.folder = folder
        self.total = torch.zeros(3)
        self.rows = 0

    def keep(self, rows: torch.Tensor, turn: int) -> None:
        torch.save(rows, os.path.join(self.folder, f"{dist.get_rank()}-{turn}.pt"))

    def add(self, rows: torch.Tensor) -> None:
        part = rows.sum(0)
        dist.all_reduce(part)
        self.total += part
        self.rows += len(rows) * dist.get_world_size()


def consume(mean: Mean, turns: int) -> None:
    gen = torch.Generator().manual_seed(dist.get_rank() + 9)
    for turn in range(turns):
        rows = torch.rand(7, 3, generator=gen)
        mean.add(rows)
        with deferring("keep rows"):
            mean.keep(rows, turn)
        if sync_should_stop(deferred_error() is not None):
            break


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    mean = Mean(os.environ.get("ROWS_DIR", tempfile.gettempdir()))
    consume(mean, turns=6)
    dist.barrier()
    dist.destroy_process_group()
    raise_if_deferred_error()
    print((mean.total / mean.rows).tolist())


if __name__ == "__main__":
    main()
