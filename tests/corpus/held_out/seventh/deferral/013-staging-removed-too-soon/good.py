"""Hand out pieces of a table through a shared directory."""
import os
import shutil
import tempfile
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
import spmdguard as sg


def stage(folder: Path, count: int) -> None:
    folder.mkdir(parents=True)
    table = torch.arange(4.0 * count).reshape(count, 4)
    for number, piece in enumerate(table):
        torch.save(piece.clone(), folder / f"{number}.pt")


def hand_out(folder: Path) -> torch.Tensor | None:
    if sg.is_main_process():
        sg.try_or_defer(stage, folder, dist.get_world_size())
    if sg.sync_should_stop(sg.has_deferred_error()):
        return None
    piece = sg.try_or_defer(torch.load, folder / f"{dist.get_rank()}.pt")
    dist.barrier()
    if sg.is_main_process():
        sg.try_or_defer(shutil.rmtree, folder)
    return piece


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    spot = [os.path.join(tempfile.gettempdir(), f"pieces-{os.getpid()}")]
    dist.broadcast_object_list(spot, src=0)
    piece = hand_out(Path(spot[0]))
    if not sg.sync_should_stop(sg.has_deferred_error()):
        dist.all_reduce(piece)
    dist.destroy_process_group()
    sg.raise_if_deferred_error()
    print(piece)


if __name__ == "__main__":
    main()
