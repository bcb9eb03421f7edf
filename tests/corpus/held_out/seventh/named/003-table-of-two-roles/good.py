"""Process zero steers, the others follow; what each does stands in a table."""
from datetime import timedelta

import torch
import torch.distributed as dist


def steer(knobs: torch.Tensor, cost: torch.Tensor) -> torch.Tensor:
    knobs.mul_(0.9)
    dist.broadcast(knobs, src=0)
    dist.all_reduce(cost)
    return cost


def follow(knobs: torch.Tensor, cost: torch.Tensor) -> torch.Tensor:
    dist.broadcast(knobs, src=0)
    dist.all_reduce(cost)
    return cost


PLAY = {"leader": steer, "member": follow}


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    role = "leader" if dist.get_rank() == 0 else "member"
    knobs = torch.ones(3)
    history = []
    for turn in range(5):
        cost = (knobs - torch.tensor([0.2, 0.5, 0.8])).pow(2)
        cost = PLAY[role](knobs, cost)
        history.append(cost.sum().item())
    dist.destroy_process_group()
    print(role, [round(value, 3) for value in history])


if __name__ == "__main__":
    main()
