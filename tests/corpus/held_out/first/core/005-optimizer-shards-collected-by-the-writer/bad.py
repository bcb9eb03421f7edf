import argparse
import pathlib

import torch
import torch.distributed as dist
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel as DDP


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--out", type=pathlib.Path, default=pathlib.Path("runs/zero"))
    p.add_argument("--epochs", type=int, default=4)
    p.add_argument("--save-every", type=int, default=2)
    return p.parse_args()


class Session:
    def __init__(self, args):
        self.args = args
        self.rank = dist.get_rank()
        net = torch.nn.Sequential(torch.nn.Linear(20, 64), torch.nn.Tanh(), torch.nn.Linear(64, 2))
        self.model = DDP(net)
        self.optimizer = ZeroRedundancyOptimizer(
            self.model.parameters(), optimizer_class=torch.optim.AdamW, lr=3e-4)

    @property
    def writes(self):
        return self.rank == 0

    def epoch(self, number):
        gen = torch.Generator().manual_seed(1000 * number + self.rank)
        for _ in range(16):
            x = torch.randn(8, 20, generator=gen)
            self.optimizer.zero_grad()
            self.model(x).logsumexp(1).mean().backward()
            self.optimizer.step()

    def save(self, number):
        if self.writes:
            self.args.out.mkdir(parents=True, exist_ok=True)
            self.optimizer.consolidate_state_dict(to=0)
            state = {
                "epoch": number,
                "model": self.model.module.state_dict(),
                "optimizer": self.optimizer.state_dict(),
            }
            torch.save(state, self.args.out / f"epoch{number:03d}.pt")

    def run(self):
        for number in range(1, self.args.epochs + 1):
            self.epoch(number)
            if number % self.args.save_every == 0:
                self.save(number)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    Session(parse()).run()
    dist.barrier()
    dist.destroy_process_group()
