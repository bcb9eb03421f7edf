"""Sharded checkpoints: every process writes its part, the master removes old ones."""
import re
import shutil
from pathlib import Path

import torch
import torch.distributed as dist


class Checkpoints:
    def __init__(self, root: Path, every: int, keep: int):
        self.root, self.every, self.keep = root, every, keep
        self.master = dist.get_rank() == 0
        found = [None]
        if self.master:
            root.mkdir(parents=True, exist_ok=True)
            found = [sorted(int(m[1]) for p in root.iterdir() if (m := re.fullmatch(r"step_(\d+)", p.name)))]
        dist.broadcast_object_list(found, src=0)
        self.steps = found[0]

    def should_save(self, step: int) -> bool:
        backlog = len(self.steps) > self.keep
        return step % self.every == 0 and not backlog

    def folder(self, step: int) -> Path:
        return self.root / f"step_{step}"

    def save(self, step: int, shard: dict):
        if self.master:
            self.folder(step).mkdir(exist_ok=True)
        dist.barrier()
        torch.save(shard, self.folder(step) / f"part{dist.get_rank()}.pt")
        dist.barrier()
        self.steps.append(step)

    def clean(self):
        if not self.master:
            return
        while len(self.steps) > self.keep:
            shutil.rmtree(self.folder(self.steps.pop(0)), ignore_errors=True)


def train(ckpt: Checkpoints, resume_at: int, total: int):
    weight = torch.zeros(8)
    for step in range(resume_at, total):
        if ckpt.should_save(step):
            ckpt.save(step, {"weight": weight})
        grad = torch.randn(8)
        dist.all_reduce(grad)
        weight -= 0.01 * grad
        ckpt.clean()


def main():
    dist.init_process_group("gloo")
    ckpt = Checkpoints(Path("runs/multi"), every=10, keep=2)
    resume_at = ckpt.steps[-1] + 1 if ckpt.steps else 0
    train(ckpt, resume_at, total=resume_at + 60)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
