import os
import shutil
from pathlib import Path

import spmdguard
import torch
from torch.nn.parallel import DistributedDataParallel as DDP


class Scratch:
    def __init__(self, root):
        self.root = Path(root) / f"rank{os.environ['RANK']}"
        self.root.mkdir(parents=True, exist_ok=True)

    @spmdguard.rank_local(default=0.0)
    @property
    def free_gb(self):
        return shutil.disk_usage(self.root).free / 2 ** 30

    @spmdguard.rank_local
    def spill(self, step, tensor):
        torch.save(tensor, self.root / f"{step}.pt")
        for old in sorted(self.root.glob("*.pt"), key=os.path.getmtime)[:-5]:
            old.unlink()


def main(steps=800):
    spmdguard.init_process_group("gloo")
    scratch = Scratch("/local/scratch")
    model = DDP(torch.nn.Linear(64, 64))
    opt = torch.optim.Adam(model.parameters())
    low = 0
    for step in range(steps):
        y = model(torch.randn(8, 64))
        opt.zero_grad()
        y.square().mean().backward()
        opt.step()
        if step % 10 == 0:
            scratch.spill(step, y.detach())
            low += scratch.free_gb < 5.0
        if spmdguard.sync_should_stop(low > 3):
            break
    spmdguard.destroy_process_group()
    spmdguard.raise_if_deferred_error()


if __name__ == "__main__":
    main()
