"""Grid of processes: the first of each row hands its seed to the row."""
from datetime import timedelta

import torch
import torch.distributed as dist


class Grid:
    def __init__(self, columns: int):
        size, rank = dist.get_world_size(), dist.get_rank()
        self.row = None
        for first in range(0, size, columns):
            members = list(range(first, min(first + columns, size)))
            group = dist.new_group(members)
            if rank in members:
                self.row = group

    def hand_out(self, value: torch.Tensor) -> None:
        dist.broadcast(value, src=dist.get_global_rank(self.row, 0), group=self.row)


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    grid = Grid(columns=2)
    seed = torch.tensor([dist.get_rank() * 1000 + 17])
    grid.hand_out(seed)
    gen = torch.Generator().manual_seed(int(seed.item()))
    draw = torch.rand(1, generator=gen)
    dist.all_reduce(draw)
    dist.destroy_process_group()
    print(draw.item())


if __name__ == "__main__":
    main()
