import signal
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.nn.parallel import DistributedDataParallel as DDP


class TrainingInterrupted(Exception):
    pass


def raise_on_signal(signum, frame):
    raise TrainingInterrupted(f"signal {signum}")


class SpeculatorTrainer:
    def __init__(self, folder):
        self.folder = folder
        self.model = DDP(torch.nn.Linear(64, 64))
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=3e-4)
        self.step = 0

    def save(self, tag):
        state = {"model": self.model.module.state_dict(), "step": torch.tensor(self.step)}
        dcp.save(state, checkpoint_id=f"{self.folder}/{tag}")

    def train(self, steps):
        while self.step < steps:
            x = torch.randn(32, 64)
            loss = (self.model(x) - x.flip(1)).abs().mean()
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            self.step += 1
        self.save("final")

    def run(self, steps):
        for which in (signal.SIGINT, signal.SIGTERM):
            signal.signal(which, raise_on_signal)
        try:
            self.train(steps)
        except TrainingInterrupted:
            self.save("interrupted")
            raise


def main():
    dist.init_process_group("gloo", timeout=timedelta(minutes=5))
    SpeculatorTrainer("/tmp/speculator").run(100_000)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
