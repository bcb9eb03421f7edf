import argparse
import os
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def work(rank: int, world: int, steps: int) -> None:
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29755")
    dist.init_process_group("gloo", rank=rank, world_size=world, timeout=timedelta(seconds=60))
    value = torch.full((2,), float(rank))
    for step in range(steps):
        if not torch.isfinite(value).all():
            raise FloatingPointError(f"step {step}")
        dist.all_reduce(value)
    dist.destroy_process_group()


def launch(world: int, steps: int) -> None:
    mp.spawn(work, args=(world, steps), nprocs=world, join=True)
    print("training finished")


def main() -> None:
    cli = argparse.ArgumentParser()
    cli.add_argument("--world", type=int, default=2)
    cli.add_argument("--steps", type=int, default=400)
    opts = cli.parse_args()
    launch(opts.world, opts.steps)


if __name__ == "__main__":
    main()
