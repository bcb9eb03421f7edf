import os
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist


class Checkpointer:
    def __init__(self, root):
        self.root = Path(root)

    def _prepare(self, step):
        folder = self.root / f"step_{step}"
        if dist.get_rank() == 0:
            if folder.exists():
                raise FileExistsError(f"{folder} is already there")
            folder.mkdir(parents=True)
        dist.barrier()
        return folder

    def save(self, step, shard):
        folder = self._prepare(step)
        torch.save(shard, folder / f"shard{dist.get_rank()}.pt")
        dist.barrier()
        if dist.get_rank() == 0:
            (self.root / "LATEST").write_text(folder.name)


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    ckpt = Checkpointer(os.environ.get("CKPT_ROOT", "/tmp/recipe_ckpt"))
    shard = torch.zeros(6)
    for step in range(1, 31):
        grad = torch.randn(6)
        dist.all_reduce(grad)
        shard -= 0.01 * grad
        if step % 10 == 0:
            ckpt.save(step, shard)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
