"""Correlation of features over all rows of a job started by srun or torchrun."""
import os
import socket
from datetime import timedelta

import torch
import torch.distributed as dist


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("", 0))
        return probe.getsockname()[1]


def connect() -> None:
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ["MASTER_PORT"] = str(free_port())
    dist.init_process_group("gloo", timeout=timedelta(minutes=5))


def correlation(rows: torch.Tensor) -> torch.Tensor:
    sums = torch.stack([rows.T @ rows, torch.full((rows.shape[1],) * 2, float(len(rows)))])
    dist.all_reduce(sums)
    cov = sums[0] / sums[1]
    scale = cov.diagonal().sqrt()
    return cov / scale.outer(scale)


def main() -> None:
    connect()
    gen = torch.Generator().manual_seed(dist.get_rank())
    table = correlation(torch.randn(500, 3, generator=gen))
    lead = dist.get_rank() == 0
    dist.barrier()
    dist.destroy_process_group()
    if lead:
        print(table)


if __name__ == "__main__":
    main()
