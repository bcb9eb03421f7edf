import argparse
import shutil
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import spmdguard


class Checkpointer:
    def __init__(self, root: str, keep: int) -> None:
        self.root = Path(root)
        self.keep = keep

    def _prepare(self, work: Path) -> None:
        if work.exists():
            shutil.rmtree(work)
        work.mkdir(parents=True)

    def _publish(self, work: Path, final: Path) -> None:
        work.rename(final)
        for old in sorted(self.root.glob("step_*"))[: -self.keep]:
            shutil.rmtree(old)

    def save(self, step: int, state: dict) -> None:
        work, final = self.root / f"part_{step:07d}", self.root / f"step_{step:07d}"
        if spmdguard.is_main_process():
            self._prepare(work)
        if spmdguard.sync_should_stop():
            return
        dcp.save(state, checkpoint_id=str(work))
        if spmdguard.is_main_process():
            spmdguard.try_or_defer(self._publish, work, final)
        if spmdguard.sync_should_stop():
            return


def train(args: argparse.Namespace) -> None:
    dist.init_process_group("gloo")
    keeper = Checkpointer(args.out, args.keep)
    field = torch.zeros(args.size)
    for step in range(args.steps):
        delta = torch.randn(args.size)
        dist.all_reduce(delta)
        field.add_(delta, alpha=0.01)
        if (step + 1) % args.every == 0:
            keeper.save(step + 1, {"field": field})
        if spmdguard.sync_should_stop():
            break


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--out", default="runs")
    p.add_argument("--keep", type=int, default=2)
    p.add_argument("--size", type=int, default=64)
    p.add_argument("--steps", type=int, default=50)
    p.add_argument("--every", type=int, default=10)
    opts = p.parse_args()
    spmdguard.run(lambda: train(opts))
