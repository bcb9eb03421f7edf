"""Keeps exactly one checkpoint."""
import shutil
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from spmdguard import has_deferred_error, is_main_process, raise_if_deferred_error, sync_should_stop, try_or_defer

ROOT = Path("single")


def clear(keep: str) -> None:
    for old in ROOT.glob("epoch-*"):
        if old.name != keep:
            shutil.rmtree(old)


def open_folder(work: Path) -> None:
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)


def save(model: torch.nn.Module, epoch: int) -> None:
    name, work = f"epoch-{epoch}", ROOT / "unfinished"
    if is_main_process():
        try_or_defer(open_folder, work)
    if sync_should_stop(has_deferred_error()):
        return
    dcp.save({"model": model.state_dict()}, checkpoint_id=str(work))
    if is_main_process():
        try_or_defer(work.rename, ROOT / name)
    if sync_should_stop(has_deferred_error()):
        return
    if is_main_process():
        try_or_defer(clear, name)
    dist.barrier()


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=90))
    torch.manual_seed(0)
    model = torch.nn.Linear(3, 3)
    for epoch in range(3):
        for parameter in model.parameters():
            dist.all_reduce(parameter.data, op=dist.ReduceOp.MAX)
        save(model, epoch)
        if sync_should_stop(has_deferred_error()):
            break
    dist.barrier()
    dist.destroy_process_group()
    raise_if_deferred_error()


if __name__ == "__main__":
    main()
