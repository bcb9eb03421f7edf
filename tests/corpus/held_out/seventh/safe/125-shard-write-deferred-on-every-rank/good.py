import os
import tempfile

import torch
import torch.distributed as dist
from spmdguard import (
    deferring,
    has_deferred_error,
    raise_if_deferred_error,
    sync_should_stop,
)


def write_shard(folder, step, weight):
    path = os.path.join(folder, f"shard{dist.get_rank()}-{step}.pt")
    torch.save(weight, f"{path}.part")
    os.replace(f"{path}.part", path)


def train(steps, every, folder):
    weight = torch.zeros(16)
    for step in range(1, steps + 1):
        total = torch.ones(1)
        dist.all_reduce(total)
        weight -= 0.1 * total
        if step % every:
            continue
        with deferring("shard"):
            write_shard(folder, step, weight)
        if sync_should_stop(has_deferred_error()):
            break
        dist.barrier()
        if dist.get_rank() == 0:
            print(f"step {step}: all shards on disk")


def main():
    dist.init_process_group("gloo")
    train(steps=12, every=4, folder=tempfile.mkdtemp())
    dist.barrier()
    dist.destroy_process_group()
    raise_if_deferred_error()


if __name__ == "__main__":
    main()
