"""Sums along the rows and columns of a process grid."""
import os
from datetime import timedelta

import torch
import torch.distributed as dist


class Grid:
    def __init__(self, width: int):
        world, rank = dist.get_world_size(), dist.get_rank()
        if world % width:
            raise SystemExit(f"{world} processes do not fill rows of {width}")
        self.height, self.width = world // width, width
        self.row, self.column = divmod(rank, width)
        rows = [dist.new_group(self.members(row=r)) for r in range(self.height)]
        columns = [dist.new_group(self.members(column=c)) for c in range(width)]
        self.row_group, self.column_group = rows[self.row], columns[self.column]

    def members(self, row=None, column=None):
        cells = [(r, c) for r in range(self.height) for c in range(self.width)]
        return [r * self.width + c for r, c in cells if row in (None, r) and column in (None, c)]

    def sums(self, value: float) -> tuple[float, float]:
        across, down = torch.tensor([value]), torch.tensor([value])
        dist.all_reduce(across, group=self.row_group)
        dist.all_reduce(down, group=self.column_group)
        return across.item(), down.item()


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    grid = Grid(int(os.environ.get("WIDTH", "2")))
    print((grid.row, grid.column), grid.sums(float(dist.get_rank())))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
