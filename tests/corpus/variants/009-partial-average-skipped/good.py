"""Average pieces between the processes that have one."""
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial

import torch
import torch.distributed as dist

add = partial(dist.all_reduce, op=dist.ReduceOp.SUM)


@dataclass
class Spot:
    index: int
    of: int
    passive: bool = field(init=False)

    def __post_init__(self) -> None:
        self.passive = self.index % 2 == 1


def average(piece: torch.Tensor, spot: Spot) -> torch.Tensor:
    whole = torch.zeros_like(piece) if spot.passive else piece.clone()
    add(whole)
    return piece if spot.passive else whole / spot.of


if __name__ == "__main__":
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    spot = Spot(dist.get_rank(), dist.get_world_size())
    print(average(torch.full((2,), float(spot.index)), spot).tolist())
    dist.destroy_process_group()
