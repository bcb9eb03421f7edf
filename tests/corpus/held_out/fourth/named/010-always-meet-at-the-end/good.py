import contextlib
from datetime import timedelta

import torch
import torch.distributed as dist


@contextlib.contextmanager
def process_group(backend="gloo", minutes=10):
    dist.init_process_group(backend, timeout=timedelta(minutes=minutes))
    yield dist.get_rank()
    dist.barrier()
    dist.destroy_process_group()


def whiten(rows):
    mean = rows.mean(dim=0)
    dist.all_reduce(mean)
    mean /= dist.get_world_size()
    centred = rows - mean
    cov = centred.T @ centred
    dist.all_reduce(cov)
    return centred @ torch.linalg.inv(torch.linalg.cholesky(cov))


def load_rows(rank):
    rows = torch.load(f"rows-{rank}.pt")
    if rows.isnan().any():
        raise ValueError(f"rows of rank {rank} hold NaN")
    return rows


def main():
    with process_group() as rank:
        white = whiten(load_rows(rank))
        torch.save(white, f"white-{rank}.pt")


if __name__ == "__main__":
    main()
