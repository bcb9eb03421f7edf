import shutil
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist


class Checkpoints:
    def __init__(self, folder, keep=3):
        self.folder, self.keep, self.steps = Path(folder), keep, []
        self.rank = dist.get_rank()

    def save(self, step, shard):
        target = self.folder / f"step_{step}"
        target.mkdir(parents=True, exist_ok=True)
        torch.save(shard, target / f"rank_{self.rank}.pt")
        self.steps.append(step)
        dist.barrier()
        self.clean()

    def clean(self):
        while len(self.steps) > self.keep:
            old = self.steps.pop(0)
            shutil.rmtree(self.folder / f"step_{old}")


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    ckpt = Checkpoints("/tmp/rl_run")
    shard = torch.zeros(5000)
    for step in range(1, 61):
        grad = torch.randn(5000)
        dist.all_reduce(grad)
        shard -= 0.01 * grad
        if step % 5 == 0:
            ckpt.save(step, shard)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
