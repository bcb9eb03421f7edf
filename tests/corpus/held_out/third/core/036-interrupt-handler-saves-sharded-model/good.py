import signal
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.nn.parallel import DistributedDataParallel as DDP


class SpeculatorTrainer:
    def __init__(self, folder):
        self.folder = folder
        self.model = DDP(torch.nn.Linear(64, 64))
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=3e-4)
        self.step = 0
        self.wanted = 0.0

    def on_signal(self, signum, frame):
        self.wanted = 1.0

    def stop_agreed(self):
        flag = torch.tensor([self.wanted])
        dist.all_reduce(flag, op=dist.ReduceOp.MAX)
        return flag.item() > 0

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
            if self.stop_agreed():
                self.save("interrupted")
                raise SystemExit(143)
        self.save("final")

    def run(self, steps):
        for which in (signal.SIGINT, signal.SIGTERM):
            signal.signal(which, self.on_signal)
        self.train(steps)


def main():
    dist.init_process_group("gloo", timeout=timedelta(minutes=5))
    SpeculatorTrainer("/tmp/speculator").run(100_000)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
