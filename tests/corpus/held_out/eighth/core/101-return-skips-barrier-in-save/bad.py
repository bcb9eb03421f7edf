from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


class CoderTrainer:
    """Trains one sparse coder per hook point."""

    def __init__(self, hooks, width, folder):
        self.coders = {name: DDP(torch.nn.Linear(width, 4 * width)) for name in hooks}
        params = [p for coder in self.coders.values() for p in coder.parameters()]
        self.opt = torch.optim.Adam(params, lr=1e-3)
        self.folder, self.width = Path(folder), width

    def step(self):
        self.opt.zero_grad()
        for coder in self.coders.values():
            coder(torch.randn(8, self.width)).relu().mean().backward()
        self.opt.step()

    def save(self):
        if dist.get_rank() != 0:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        for name, coder in self.coders.items():
            torch.save(coder.module.state_dict(), self.folder / f"{name}.pt")
        # nobody continues before the files are there
        dist.barrier()

    def fit(self, steps, save_every):
        for step in range(1, steps + 1):
            self.step()
            if step % save_every == 0:
                self.save()


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    CoderTrainer(["layer3", "layer7"], width=16, folder="/tmp/coders").fit(20, save_every=10)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
