"""Gradient descent towards the mean of targets that the processes hold."""
import itertools
from datetime import timedelta

import torch
import torch.distributed as dist


class Gap:
    def __init__(self, floor: float):
        self.floor = floor
        self.size = float("inf")

    def __call__(self, step: int) -> bool:
        return self.size > self.floor


def descend(target: torch.Tensor, limit: int, floor: float) -> torch.Tensor:
    point = torch.zeros_like(target)
    gap = Gap(floor)
    for step in itertools.takewhile(gap, range(limit)):
        grad = point - target
        dist.all_reduce(grad)
        gap.size = grad.norm().item()
        point = point - 0.3 * grad / dist.get_world_size()
    return point


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=40))
    target = torch.rand(3, generator=torch.Generator().manual_seed(dist.get_rank()))
    point = descend(target, limit=60, floor=0.35)
    dist.destroy_process_group()
    print(point.tolist())


if __name__ == "__main__":
    main()
