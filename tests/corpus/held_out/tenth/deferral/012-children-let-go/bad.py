"""Monte Carlo estimate of pi on several local processes."""
import os
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def count(index: int, size: int, draws: int) -> None:
    dist.init_process_group(
        "gloo", init_method="tcp://127.0.0.1:29641", rank=index, world_size=size, timeout=timedelta(seconds=60)
    )
    gen = torch.Generator().manual_seed(index)
    inside = (torch.rand(draws, 2, generator=gen).pow(2).sum(1) < 1).sum().reshape(1)
    dist.all_reduce(inside)
    dist.destroy_process_group()
    if index == 0:
        with open("pi.txt", "w") as f:
            f.write(f"{4 * inside.item() / (draws * size)}\n")


def main() -> None:
    size = int(os.environ.get("CHILDREN", "2"))
    mp.spawn(count, args=(size, 100_000), nprocs=size, join=False)
    print("pi estimated")


if __name__ == "__main__":
    main()
