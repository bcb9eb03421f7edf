"""Started by srun, one task for each core group."""
import os
from datetime import timedelta

import torch
import torch.distributed as dist


def slurm(name: str) -> int:
    return int(os.environ[f"SLURM_{name}"])


def join() -> tuple[int, int]:
    me, everybody = slurm("PROCID"), slurm("NTASKS")
    store = dist.TCPStore(os.environ["MASTER_ADDR"], 29511, everybody, me == 0, timeout=timedelta(minutes=2))
    dist.init_process_group("gloo", store=store, rank=me, world_size=everybody, timeout=timedelta(minutes=2))
    return me, everybody


def main() -> None:
    me, everybody = join()
    gen = torch.Generator().manual_seed(me)
    inside = (torch.rand(10000, 2, generator=gen).square().sum(dim=1) < 1).sum()
    dist.all_reduce(inside)
    dist.barrier()
    dist.destroy_process_group()
    if me == 0:
        print(4 * inside.item() / (10000 * everybody))


if __name__ == "__main__":
    main()
