import argparse
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


class Budget:
    def __init__(self, minutes):
        self.deadline = time.monotonic() + 60 * minutes

    @property
    def spent(self):
        return time.monotonic() > self.deadline


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--minutes", type=float, default=30.0)
    p.add_argument("--max-steps", type=int, default=100_000)
    return p.parse_args()


def main():
    args = parse()
    dist.init_process_group("gloo")
    model = DDP(torch.nn.Sequential(torch.nn.Linear(30, 30), torch.nn.GELU(), torch.nn.Linear(30, 1)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    budget = Budget(args.minutes)
    step = 0
    while step < args.max_steps:
        over = torch.tensor([int(budget.spent)])
        dist.all_reduce(over, op=dist.ReduceOp.MAX)
        if over.item():
            break
        x = torch.randn(128, 30)
        loss = (model(x).squeeze(1) - x.norm(dim=1)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
    last = torch.tensor([step])
    dist.all_reduce(last, op=dist.ReduceOp.MIN)
    lead = dist.get_rank() == 0
    dist.destroy_process_group()
    if lead:
        torch.save({"step": last.item(), "model": model.module.state_dict()}, "last.pt")


if __name__ == "__main__":
    main()
