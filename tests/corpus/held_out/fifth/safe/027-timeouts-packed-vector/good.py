import json
import os
import time

import torch
import torch.distributed as dist

SECTIONS = ("setup", "step", "eval", "checkpoint")


class SectionTimeouts:
    def __init__(self, safety: float = 5.0):
        self.safety = safety
        self.longest = {}
        self.opened = {}
        self.timeouts = {}

    def start(self, name):
        self.opened[name] = time.monotonic()

    def end(self, name):
        took = time.monotonic() - self.opened.pop(name)
        self.longest[name] = max(took, self.longest.get(name, 0.0))

    def synchronize(self):
        vec = torch.tensor([self.longest.get(s, 0.0) for s in SECTIONS], dtype=torch.float64)
        dist.all_reduce(vec, op=dist.ReduceOp.MAX)
        self.longest = dict(zip(SECTIONS, vec.tolist()))
        self.timeouts = {s: t * self.safety for s, t in self.longest.items() if t > 0}


def evaluate_on_last(model, rank, world):
    if rank == world - 1:
        with torch.no_grad():
            return model.module(torch.randn(64, 32)).square().mean().item()
    return None


def main():
    timer = SectionTimeouts()
    timer.start("setup")
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(32, 32))
    timer.end("setup")
    for step in range(1, 201):
        timer.start("step")
        model(torch.randn(8, 32)).sum().backward()
        timer.end("step")
        if step % 50 == 0:
            if rank == world - 1:
                timer.start("eval")
                evaluate_on_last(model, rank, world)
                timer.end("eval")
            if rank == 0:
                timer.start("checkpoint")
                torch.save(model.module.state_dict(), "/tmp/model.pt")
                timer.end("checkpoint")
            timer.synchronize()
    if rank == 0:
        path = os.environ.get("TIMEOUTS", "/tmp/timeouts.json")
        with open(path, "w") as f:
            json.dump(timer.timeouts, f, indent=2)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
