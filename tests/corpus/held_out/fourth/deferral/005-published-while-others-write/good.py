"""Sharded checkpoint in four phases: folder, shards, metadata and rename, farewell."""
import json
import os
from pathlib import Path

import torch
import torch.distributed as dist
from spmdguard import deferring, is_main_process, run, sync_should_stop


def save_sharded(root: Path, step: int, shard: dict) -> bool:
    final, work = root / f"step-{step}", root / f"step-{step}.tmp"
    if is_main_process():
        with deferring("checkpoint folder"):
            work.mkdir(parents=True)
    if sync_should_stop():
        return False
    with deferring("checkpoint shard"):
        torch.save(shard, work / f"{dist.get_rank():05d}.pt")
    if sync_should_stop():
        return False
    if is_main_process():
        with deferring("checkpoint publish"):
            (work / "meta.json").write_text(json.dumps({"step": step, "ranks": dist.get_world_size()}))
            os.replace(work, final)
    return not sync_should_stop()


@run()
def main() -> None:
    dist.init_process_group("gloo")
    root = Path(os.environ.get("CKPT", "ckpt"))
    state = torch.zeros(32)
    for step in range(1, 101):
        push = torch.randn(32)
        dist.all_reduce(push)
        state += push
        if step % 25 == 0 and not save_sharded(root, step, {"state": state}):
            break
        if sync_should_stop():
            break


if __name__ == "__main__":
    main()
