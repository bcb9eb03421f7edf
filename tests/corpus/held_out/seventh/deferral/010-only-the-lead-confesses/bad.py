"""Every process writes its own part of the result."""
import os
from datetime import timedelta

import torch
import torch.distributed as dist
from spmdguard import has_deferred_error, raise_if_deferred_error, rank_local, sync_should_stop


@rank_local
def write_part(folder, step, part):
    os.makedirs(folder, exist_ok=True)
    torch.save(part, os.path.join(folder, f"{step:04d}-{dist.get_rank():04d}.pt"))


def produce(folder, steps):
    """Whether all steps were done."""
    gen = torch.Generator().manual_seed(9 * dist.get_rank())
    level = torch.zeros(2)
    for step in range(steps):
        part = torch.rand(2, generator=gen)
        dist.all_reduce(part)
        level += part
        write_part(folder, step, level)
        if sync_should_stop(has_deferred_error()):
            return False
    return True


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=45))
    lead = dist.get_rank() == 0
    complete = produce(os.environ.get("PARTS", "parts"), steps=6)
    dist.barrier()
    dist.destroy_process_group()
    if lead:
        raise_if_deferred_error()
    if lead and complete:
        print("all parts written")


if __name__ == "__main__":
    main()
