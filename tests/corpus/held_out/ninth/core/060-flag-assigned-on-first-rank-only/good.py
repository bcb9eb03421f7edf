import json
import os
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist


def track(project, **values):
    with open(f"/tmp/{project}.jsonl", "a") as out:
        out.write(json.dumps(values) + "\n")


def main(output=Path("/tmp/mini_run"), project=os.environ.get("TRACK_PROJECT")):
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    rank, world = dist.get_rank(), dist.get_world_size()
    settings = {"lr": 0.05, "steps": 20, "world": world}
    use_tracker = project is not None
    if rank == 0:
        output.mkdir(parents=True, exist_ok=True)
        (output / "settings.json").write_text(json.dumps(settings, indent=1))
        if use_tracker:
            track(project, **settings)

    weight = torch.zeros(32)
    for step in range(settings["steps"]):
        grad = weight - torch.randn(32)
        dist.all_reduce(grad)
        weight -= settings["lr"] * grad / world
        if use_tracker and rank == 0:
            track(project, step=step, norm=weight.norm().item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
