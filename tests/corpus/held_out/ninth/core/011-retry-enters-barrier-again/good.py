import os
import time
from datetime import timedelta

import torch
import torch.distributed as dist


def retrying(action, tries=3, pause=0.2):
    for attempt in range(1, tries + 1):
        try:
            return action()
        except OSError as err:
            print(f"rank {dist.get_rank()} attempt {attempt}: {err}")
            time.sleep(pause * attempt)
    raise RuntimeError("giving up")


def write_shard(folder, shard):
    torch.save(shard, f"{folder}/shard{dist.get_rank()}.pt")


def save(folder, shard):
    if dist.get_rank() == 0:
        os.makedirs(folder, exist_ok=True)
    dist.barrier()
    error = None
    try:
        retrying(lambda: write_shard(folder, shard))  # no collective inside
    except RuntimeError as err:
        error = f"rank {dist.get_rank()}: {err}"
    reports = [None] * dist.get_world_size()
    dist.all_gather_object(reports, error)
    if any(reports):
        raise RuntimeError("; ".join(r for r in reports if r))


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    shard = torch.zeros(100)
    for step in range(1, 31):
        grad = torch.randn(100)
        dist.all_reduce(grad)
        shard -= 0.01 * grad
        if step % 10 == 0:
            save(f"/tmp/shards_{step}", shard)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
