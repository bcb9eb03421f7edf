from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist


@dataclass
class Plan:
    epochs: int = 6
    steps: int = 5
    file: Path = Path("/tmp/regressor.pt")


class Regressor:
    def __init__(self, plan: Plan):
        self.plan = plan
        self.first = 0
        self.weight = torch.zeros(8)

    def resume(self) -> None:
        if dist.get_rank() == 0 and self.plan.file.exists():
            blob = torch.load(self.plan.file)
            self.weight = blob["weight"]
            self.first = blob["epoch"] + 1
        dist.broadcast(self.weight, src=0)

    def save(self, epoch: int) -> None:
        if dist.get_rank() == 0:
            torch.save({"weight": self.weight, "epoch": epoch}, self.plan.file)

    def fit(self, target: torch.Tensor) -> None:
        for epoch in range(self.first, self.plan.epochs):
            for _ in range(self.plan.steps):
                grad = self.weight - target
                dist.all_reduce(grad)
                self.weight -= 0.1 * grad / dist.get_world_size()
            self.save(epoch)


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    job = Regressor(Plan())
    job.resume()
    job.fit(torch.full((8,), float(dist.get_rank())))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
