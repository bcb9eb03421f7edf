"""Sharded checkpoints; the two newest are kept."""
import shutil
import tempfile
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from spmdguard import deferring, has_deferred_error, is_main_process, raise_if_deferred_error, sync_should_stop


class Shelf:
    def __init__(self, root: Path, keep: int = 2):
        self.root, self.keep = root, keep

    def prune(self) -> None:
        done = sorted(self.root.glob("step-*"))
        for folder in done[: -self.keep]:
            shutil.rmtree(folder)

    def save(self, shard: torch.Tensor, step: int) -> bool:
        folder = self.root / f"step-{step:06d}"
        if is_main_process():
            with deferring("make folder"):
                folder.mkdir(parents=True)
        if sync_should_stop(has_deferred_error()):
            return False
        with deferring("write shard"):
            torch.save(shard, folder / f"{dist.get_rank()}.pt")
        if is_main_process():
            with deferring("prune"):
                self.prune()
        return not sync_should_stop(has_deferred_error())


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    root = [tempfile.mkdtemp() if is_main_process() else None]
    dist.broadcast_object_list(root, src=0)
    shelf, shard = Shelf(Path(root[0])), torch.zeros(100)
    for step in range(6):
        delta = torch.randn(100)
        dist.all_reduce(delta)
        shard += delta
        if not shelf.save(shard, step):
            break
    dist.barrier()
    dist.destroy_process_group()
    raise_if_deferred_error()


if __name__ == "__main__":
    main()
