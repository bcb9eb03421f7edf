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
        problem = [None]
        if dist.get_rank() == 0:
            try:
                folder.mkdir(parents=True)
            except OSError as exc:
                problem[0] = f"cannot make {folder}: {exc}"
        dist.broadcast_object_list(problem, src=0)
        if problem[0]:
            raise RuntimeError(problem[0])
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
