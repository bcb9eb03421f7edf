import json
from datetime import timedelta

import torch
import torch.distributed as dist


class Tracker:
    def __init__(self, path):
        self.path = path

    def log(self, row):
        with open(self.path, "a") as handle:
            handle.write(json.dumps(row) + "\n")


def train(steps, path):
    use_tracker = path is not None
    tracker = Tracker(path) if use_tracker and dist.get_rank() == 0 else None
    weight, lost = torch.zeros(3), 0
    for step in range(steps):
        grad = torch.ones(3) * (step + 1)
        dist.all_reduce(grad)
        weight -= 0.1 * grad
        if use_tracker:
            norm = weight.norm().reshape(1)
            dist.all_reduce(norm, op=dist.ReduceOp.MAX)
            if tracker is not None:
                try:
                    tracker.log({"step": step, "norm": norm.item()})
                except OSError:
                    lost += 1
    return weight, lost


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    weight, lost = train(5, path="/nowhere/at/all/metrics.jsonl")
    assert lost == (5 if dist.get_rank() == 0 else 0)
    probe = weight.clone()
    dist.broadcast(probe, src=0)
    assert torch.equal(probe, weight)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
