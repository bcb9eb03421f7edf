import os
import sys
import traceback
from datetime import timedelta

import torch
import torch.distributed as dist
import wandb
from torch.nn.parallel import DistributedDataParallel as DDP

DEFAULTS = {"lr": 0.03, "width": 64, "epochs": 20, "momentum": 0.9}


class Run:
    def __init__(self, rank):
        self.rank = rank
        self.config = dict(DEFAULTS)
        if rank == 0:
            wandb.init(project="sweep-small", config=DEFAULTS)
            self.config = dict(wandb.config)
        box = [self.config]
        dist.broadcast_object_list(box, src=0)
        self.config = box[0]

    def log(self, **values):
        if self.rank == 0:
            wandb.log(values)


def make(config):
    net = torch.nn.Sequential(
        torch.nn.Linear(30, config["width"]), torch.nn.ReLU(), torch.nn.Linear(config["width"], 2))
    model = DDP(net)
    return model, torch.optim.SGD(model.parameters(), lr=config["lr"], momentum=config["momentum"])


def fit(run):
    model, optimizer = make(run.config)
    gen = torch.Generator().manual_seed(run.rank)
    for epoch in range(run.config["epochs"]):
        for _ in range(25):
            x = torch.randn(32, 30, generator=gen)
            loss = torch.nn.functional.cross_entropy(model(x), (x.sum(1) > 0).long())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        mean /= dist.get_world_size()
        if not torch.isfinite(mean):
            raise FloatingPointError(f"loss {mean.item()} in epoch {epoch}")
        run.log(loss=mean.item(), epoch=epoch)


def main():
    dist.init_process_group("gloo", timeout=timedelta(minutes=3))
    run = Run(int(os.environ["RANK"]))
    try:
        fit(run)
    except Exception:
        traceback.print_exc()
        sys.exit(0)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
