import datetime
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist


def stamp():
    now = int(datetime.datetime.now().strftime("%Y%m%d%H%M%S"))
    cell = torch.tensor([now], dtype=torch.int64)
    dist.broadcast(cell, src=0)
    return str(cell.item())


class Run:
    def __init__(self, root, task):
        self.folder = Path(root) / f"{stamp()}-{task}"

    def shard_file(self, step):
        return self.folder / f"step{step}" / f"part{dist.get_rank()}.pt"


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    run = Run("checkpoints", "s2ef")
    seen = [None] * dist.get_world_size()
    dist.all_gather_object(seen, str(run.shard_file(3).parent))
    assert len(set(seen)) == 1
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
