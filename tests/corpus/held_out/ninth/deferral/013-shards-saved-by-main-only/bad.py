from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import spmdguard as sg


class Snapshots:
    """Saves every n-th state."""

    def __init__(self, root: Path, every: int):
        self.root = root
        self.every = every

    def due(self, step: int) -> bool:
        return step % self.every == self.every - 1

    def take(self, state: dict, step: int) -> None:
        folder = self.root / str(step)
        if sg.is_main_process():
            sg.try_or_defer(folder.mkdir, parents=True, exist_ok=True)
            sg.try_or_defer(dcp.save, state, checkpoint_id=str(folder))


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=70))
    snapshots = Snapshots(Path("snapshots"), every=2)
    estimate = torch.zeros(4)
    for step in range(6):
        noise = torch.randn(4)
        dist.all_reduce(noise)
        estimate += noise / dist.get_world_size()
        if snapshots.due(step):
            snapshots.take({"estimate": estimate}, step)
        if sg.sync_should_stop(sg.has_deferred_error()):
            break
    dist.barrier()
    dist.destroy_process_group()
    sg.raise_if_deferred_error()


if __name__ == "__main__":
    main()
