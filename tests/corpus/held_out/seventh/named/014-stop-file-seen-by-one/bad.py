"""A long loop that ends when somebody touches a file named STOP."""
import os
from datetime import timedelta

import torch
import torch.distributed as dist


class Panel:
    """What the operator wants; process zero looks it up."""

    def __init__(self, path: str = "STOP"):
        self.path = path
        self.stop = False

    def look(self) -> None:
        self.stop = os.path.exists(self.path)


def wander(steps: int, every: int) -> torch.Tensor:
    panel = Panel()
    place = torch.zeros(2)
    gen = torch.Generator().manual_seed(77 + dist.get_rank())
    for step in range(steps):
        move = torch.randn(2, generator=gen)
        dist.all_reduce(move)
        place += move
        if step % every:
            continue
        if dist.get_rank() == 0:
            panel.look()
        dist.barrier()
        if panel.stop:
            break
    return place


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(minutes=2))
    place = wander(steps=10_000, every=10)
    dist.destroy_process_group()
    print(place.tolist())


if __name__ == "__main__":
    main()
