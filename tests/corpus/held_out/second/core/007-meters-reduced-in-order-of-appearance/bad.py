"""Multi-task averages over all processes."""
from datetime import timedelta

import torch
import torch.distributed as dist

TASKS = ("ner", "pos", "chunk", "srl")


class Meters:
    def __init__(self):
        self.sums: dict[str, torch.Tensor] = {}

    def add(self, task: str, loss: float) -> None:
        cell = self.sums.setdefault(task, torch.zeros(2))
        cell += torch.tensor([loss, 1.0])

    def averages(self) -> dict[str, float]:
        for cell in self.sums.values():
            dist.all_reduce(cell)
        return {task: (cell[0] / cell[1]).item() for task, cell in self.sums.items()}


def draws(rank: int):
    gen = torch.Generator().manual_seed(rank)
    for _ in range(5):
        for index in torch.randperm(len(TASKS), generator=gen).tolist():
            yield TASKS[index], index + torch.rand(1, generator=gen).item()


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    meters = Meters()
    for task, loss in draws(dist.get_rank()):
        meters.add(task, loss)
    means = meters.averages()
    if dist.get_rank() == 0:
        print({task: round(means[task], 3) for task in TASKS})
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
