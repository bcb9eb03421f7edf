import json
from pathlib import Path

import torch
import torch.distributed as dist
from spmdguard import rank_local, run, sync_should_stop

PLAN = Path("plan.json")


@rank_local(only="main", default=1e-3)
def planned_rate(step: int) -> float:
    """The rate for this step; the file may be edited while the job runs."""
    entries = json.loads(PLAN.read_text())
    return max((e for e in entries if e["from"] <= step), key=lambda e: e["from"])["rate"]


class Optimiser:
    def __init__(self, weights: torch.Tensor) -> None:
        self.weights = weights
        self.velocity = torch.zeros_like(weights)

    def step(self, grad: torch.Tensor, rate: float) -> None:
        self.velocity.mul_(0.9).add_(grad)
        self.weights.sub_(rate * self.velocity)


@run()
def main() -> None:
    dist.init_process_group("gloo")
    optimiser = Optimiser(torch.zeros(12))
    for step in range(500):
        grad = optimiser.weights - torch.randn(12)
        dist.all_reduce(grad)
        grad /= dist.get_world_size()
        rate = [planned_rate(step)]
        dist.broadcast_object_list(rate, src=0)
        optimiser.step(grad, rate[0])
        if sync_should_stop():
            break


if __name__ == "__main__":
    main()
