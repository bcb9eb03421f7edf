import json
import os
from datetime import timedelta

import torch
import torch.distributed as dist
import spmdguard


def shard_name(rank: int) -> str:
    return f"embedding-{rank:03d}.pt"


def write_manifest(folder: str, step: int) -> None:
    names = [shard_name(rank) for rank in range(dist.get_world_size())]
    with open(os.path.join(folder, "manifest.json"), "w") as f:
        json.dump({"step": step, "shards": names}, f)


def save(folder: str, shard: torch.Tensor, step: int) -> bool:
    if spmdguard.is_main_process():
        spmdguard.try_or_defer(os.makedirs, folder, exist_ok=True)
    if spmdguard.sync_should_stop(spmdguard.has_deferred_error()):
        return False
    spmdguard.try_or_defer(torch.save, shard, os.path.join(folder, shard_name(dist.get_rank())))
    if spmdguard.sync_should_stop(spmdguard.has_deferred_error()):
        return False
    spmdguard.try_or_defer(write_manifest, folder, step)
    return not spmdguard.sync_should_stop(spmdguard.has_deferred_error())


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    shard = torch.randn(10, 4)
    for step in range(2):
        scale = shard.abs().max().reshape(1)
        dist.all_reduce(scale, op=dist.ReduceOp.MAX)
        shard /= scale
        if not save("embedding", shard, step):
            break
    dist.barrier()
    dist.destroy_process_group()
    spmdguard.raise_if_deferred_error()


if __name__ == "__main__":
    main()
