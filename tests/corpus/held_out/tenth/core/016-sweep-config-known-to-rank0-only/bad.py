"""Small classifier trained under a hyperparameter sweep."""
from datetime import timedelta

import torch
import torch.distributed as dist
import wandb
from torch.nn.parallel import DistributedDataParallel

DEFAULTS = {"lr": 0.05, "steps": 40}


def hyperparameters():
    if dist.get_rank() == 0:
        run = wandb.init(project="sweep-demo", config=DEFAULTS)
        return dict(run.config), run
    return dict(DEFAULTS), None


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    config, run = hyperparameters()
    body = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3))
    model = DistributedDataParallel(body)
    opt = torch.optim.SGD(model.parameters(), lr=config["lr"])
    last = 0.0
    for step in range(config["steps"]):
        x, y = torch.randn(16, 8), torch.randint(0, 3, (16,))
        loss = torch.nn.functional.cross_entropy(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        last = loss.item()
    dist.barrier()
    dist.destroy_process_group()
    if run is not None:
        run.log({"loss": last})
        run.finish()


if __name__ == "__main__":
    main()
