import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel as DDP


class SaverCallback:
    def __init__(self, folder, every):
        self.folder, self.every = folder, every

    def trigger_epoch(self, trainer):
        if trainer.epoch % self.every == 0 and dist.get_rank() == 0:
            os.makedirs(self.folder, exist_ok=True)
            torch.save(trainer.state_dict(), os.path.join(self.folder, f"epoch-{trainer.epoch}.pt"))


class SegmentationTrainer:
    def __init__(self, lr):
        self.net = DDP(torch.nn.Sequential(torch.nn.Linear(30, 60), torch.nn.ReLU(), torch.nn.Linear(60, 19)))
        self.optimizer = ZeroRedundancyOptimizer(self.net.parameters(), optimizer_class=torch.optim.Adam, lr=lr)
        self.epoch = 0

    def state_dict(self):
        self.optimizer.consolidate_state_dict(to=0)
        return {
            "net": self.net.module.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "epoch": self.epoch,
        }

    def fit(self, epochs, callback):
        for self.epoch in range(1, epochs + 1):
            for _ in range(10):
                x, y = torch.randn(8, 30), torch.randint(0, 19, (8,))
                self.optimizer.zero_grad()
                torch.nn.functional.cross_entropy(self.net(x), y).backward()
                self.optimizer.step()
            callback.trigger_epoch(self)


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    SegmentationTrainer(lr=1e-3).fit(4, SaverCallback("/tmp/spv_runs", every=2))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
