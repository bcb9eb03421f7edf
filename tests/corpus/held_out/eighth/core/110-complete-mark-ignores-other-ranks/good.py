import os
import shutil
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist


def copy_part(source, target):
    if os.environ.get("FULL_DISK", "1") == "1" and source.stem.endswith("rank1"):
        raise OSError(28, "No space left on device")
    shutil.copy2(source, target)


class StagedCheckpoint:
    """Write to the local disk first, then move the parts to the shared one."""

    def __init__(self, local, shared):
        self.local, self.shared = Path(local), Path(shared)
        self.rank = dist.get_rank()

    def save(self, step, part):
        target = self.shared / f"step{step}"
        error = None
        try:
            self.local.mkdir(parents=True, exist_ok=True)
            target.mkdir(parents=True, exist_ok=True)
            staged = self.local / f"part_rank{self.rank}.pt"
            torch.save(part, staged)
            copy_part(staged, target)
        except Exception as exc:  # told to all ranks below
            error = f"rank {self.rank}: {exc}"
        errors = [None] * dist.get_world_size()
        dist.all_gather_object(errors, error)
        errors = [e for e in errors if e]
        if errors:
            raise RuntimeError(f"step {step} not published: " + "; ".join(errors))
        if self.rank == 0:
            (target / "COMPLETE").touch()
        dist.barrier()


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    ckpt = StagedCheckpoint(f"/tmp/stage{dist.get_rank()}", "/tmp/shared_ckpt")
    part = torch.zeros(64)
    for step in range(1, 13):
        grad = torch.randn(64)
        dist.all_reduce(grad)
        part -= 0.01 * grad
        if step % 6 == 0:
            ckpt.save(step, part)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
