"""Sharded optimiser state, published by a rename."""
import os
from datetime import timedelta

import torch
import torch.distributed as dist
from spmdguard import deferring, has_deferred_error, is_main_process, raise_if_deferred_error, sync_should_stop


def write_shard(folder: str, moments: torch.Tensor) -> None:
    path = os.path.join(folder, f"moments-{dist.get_rank()}.pt")
    torch.save(moments, path)


def checkpoint(root: str, moments: torch.Tensor, step: int) -> bool:
    work, final = os.path.join(root, "incoming"), os.path.join(root, f"{step:06d}")
    if is_main_process():
        with deferring("prepare"):
            os.makedirs(work)
    if sync_should_stop(has_deferred_error()):
        return False
    with deferring("shard"):
        write_shard(work, moments)
    if is_main_process():
        with deferring("publish"):
            os.replace(work, final)
    return not sync_should_stop(has_deferred_error())


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=80))
    moments = torch.zeros(5)
    for step in range(3):
        grad = torch.full((5,), 1.0 + step)
        dist.all_reduce(grad)
        moments = 0.9 * moments + 0.1 * grad
        if not checkpoint("moments", moments, step):
            break
    dist.barrier()
    dist.destroy_process_group()
    raise_if_deferred_error()


if __name__ == "__main__":
    main()
