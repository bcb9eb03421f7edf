import os
import shutil
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist


def copy_tree(stage, final):
    final.mkdir(parents=True, exist_ok=True)
    for part in sorted(stage.glob("*.pt")):
        shutil.copyfile(part, final / part.name)


def promote(stage, final, leader):
    """Node leaders copy the staged shards, rank 0 then publishes the index."""
    try:
        if leader:
            copy_tree(stage, final)
        dist.barrier()
        if dist.get_rank() == 0:
            (final / "index.txt").write_text("\n".join(sorted(p.name for p in final.glob("*.pt"))))
    finally:
        if leader:
            shutil.rmtree(stage, ignore_errors=True)
        dist.barrier()


def main():
    dist.init_process_group("gloo", timeout=timedelta(minutes=10))
    leader = int(os.environ["LOCAL_RANK"]) == 0
    stage, final = Path("/tmp/stage"), Path(os.environ.get("FINAL", "/tmp/final"))
    stage.mkdir(exist_ok=True)
    torch.save(torch.rand(100), stage / f"shard{dist.get_rank()}.pt")
    dist.barrier()
    promote(stage, final, leader)
    total = torch.ones(1)
    dist.all_reduce(total)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
