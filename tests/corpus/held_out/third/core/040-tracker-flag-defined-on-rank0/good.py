import json
import os
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


class FileTracker:
    def __init__(self, path):
        self.path = path

    def log(self, row):
        with open(self.path, "a") as handle:
            handle.write(json.dumps(row) + "\n")


def train(params, out):
    rank = dist.get_rank()
    use_tracker = params.get("project") is not None
    if rank == 0:
        out.mkdir(parents=True, exist_ok=True)
        tracker = FileTracker(out / "metrics.jsonl") if use_tracker else None
        (out / "training_params.json").write_text(json.dumps(params))
    model = DDP(torch.nn.Linear(params["width"], 1))
    opt = torch.optim.AdamW(model.parameters(), lr=params["lr"])
    for step in range(params["steps"]):
        x = torch.randn(8, params["width"])
        loss = (model(x).squeeze(1) - x.mean(1)).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        shared = loss.detach().clone()
        if use_tracker:
            dist.all_reduce(shared)
            if rank == 0:
                tracker.log({"step": step, "loss": shared.item() / dist.get_world_size()})


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    params = {"width": 16, "lr": 1e-2, "steps": 25, "project": os.environ.get("PROJECT", "mini")}
    train(params, Path("/tmp/mini_out"))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
