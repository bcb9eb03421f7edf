import os
import sys
import traceback
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


class Experiment:
    def __init__(self, options):
        self.options = options
        self.net = DDP(torch.nn.Linear(options["inputs"], 3))
        self.optim = torch.optim.SGD(self.net.parameters(), lr=options["lr"])

    def batch(self, epoch):
        gen = torch.Generator().manual_seed(epoch)
        return torch.randn(16, self.options["inputs"], generator=gen), torch.randint(0, 3, (16,), generator=gen)

    def train_epoch(self, epoch):
        x, y = self.batch(epoch)
        loss = torch.nn.functional.cross_entropy(self.net(x), y)
        if not torch.isfinite(loss):
            raise ValueError(f"loss is {loss.item()} in epoch {epoch}")
        self.optim.zero_grad()
        loss.backward()
        self.optim.step()

    def run(self):
        for epoch in range(self.options["epochs"]):
            self.train_epoch(epoch)


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    try:
        Experiment({"inputs": 12, "lr": float(os.environ.get("LR", "0.1")), "epochs": 30}).run()
    except Exception:
        traceback.print_exc()
        sys.exit(1)
    dist.destroy_process_group()
    print("done")


if __name__ == "__main__":
    main()
    sys.exit(0)
