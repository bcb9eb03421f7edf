"""Sharded accumulator with a pointer to the newest complete state."""
import os
import tempfile
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
import spmdguard as sg


def write_shard(folder: Path, shard: torch.Tensor) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    part = folder / f"{dist.get_rank():05d}.part"
    torch.save(shard, part)
    part.replace(part.with_suffix(".pt"))


def point_to(root: Path, folder: Path) -> None:
    fresh = root / "newest.part"
    fresh.write_text(folder.name)
    fresh.replace(root / "newest")


def save(root: Path, shard: torch.Tensor, step: int) -> None:
    folder = root / f"step-{step:05d}"
    sg.try_or_defer(write_shard, folder, shard)
    if sg.sync_should_stop(sg.has_deferred_error()):
        return
    if sg.is_main_process():
        sg.try_or_defer(point_to, root, folder)


def accumulate(root: Path, steps: int) -> None:
    shard = torch.zeros(3)
    for step in range(steps):
        push = torch.full((3,), float(step))
        dist.all_reduce(push)
        shard += push
        save(root, shard, step)
        if sg.sync_should_stop(sg.has_deferred_error()):
            break


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(minutes=1))
    spot = [os.path.join(tempfile.gettempdir(), f"accumulate-{os.getpid()}")]
    dist.broadcast_object_list(spot, src=0)
    accumulate(Path(spot[0]), steps=3)
    dist.destroy_process_group()
    sg.raise_if_deferred_error()


if __name__ == "__main__":
    main()
