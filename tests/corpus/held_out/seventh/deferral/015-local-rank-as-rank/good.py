"""Average of local samples over all nodes."""
import argparse
import os
from contextlib import contextmanager
from datetime import timedelta

import torch
import torch.distributed as dist


@contextmanager
def joined(backend: str, seconds: int):
    place = int(os.environ.get("RANK", "0"))
    total = int(os.environ.get("WORLD_SIZE", "1"))
    dist.init_process_group(
        backend,
        init_method="env://",
        rank=place,
        world_size=total,
        timeout=timedelta(seconds=seconds),
    )
    yield place
    dist.destroy_process_group()


def average(samples: torch.Tensor) -> float:
    both = torch.tensor([samples.sum().item(), float(samples.numel())], dtype=torch.float64)
    dist.all_reduce(both)
    return (both[0] / both[1]).item()


def main() -> None:
    parser = argparse.ArgumentParser(description="run with torchrun, on one node or on several")
    parser.add_argument("--backend", default="gloo")
    parser.add_argument("--seconds", type=int, default=120)
    opts = parser.parse_args()
    with joined(opts.backend, opts.seconds) as place:
        gen = torch.Generator().manual_seed(place)
        value = average(torch.rand(100, generator=gen))
    print(f"{value:.5f}")


if __name__ == "__main__":
    main()
