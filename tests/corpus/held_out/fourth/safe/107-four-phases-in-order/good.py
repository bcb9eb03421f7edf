import os
import shutil
from pathlib import Path

import torch
import torch.distributed as dist
from spmdguard import deferring, is_main_process, run, sync_should_stop


def save(root: Path, step: int, shard: torch.Tensor) -> None:
    work, final = root / f".step-{step}", root / f"step-{step}"
    if is_main_process():
        with deferring("folder"):
            shutil.rmtree(work, ignore_errors=True)
            work.mkdir(parents=True)
    if sync_should_stop():
        return
    with deferring("shard"):
        torch.save(shard, work / f"{dist.get_rank()}.pt")
    if sync_should_stop():
        return
    if is_main_process():
        with deferring("publish"):
            shutil.rmtree(final, ignore_errors=True)
            os.replace(work, final)
    dist.barrier()


@run()
def main() -> None:
    dist.init_process_group("gloo")
    shard = torch.zeros(10)
    for step in range(1, 7):
        push = torch.ones(10)
        dist.all_reduce(push)
        shard += push
        if step % 3 == 0:
            save(Path("shards"), step, shard)
        if sync_should_stop():
            break


if __name__ == "__main__":
    main()
