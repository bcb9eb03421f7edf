"""Sum rows of numbers that every process reads from a file of its own."""
import argparse
import csv
from datetime import timedelta

import torch
import torch.distributed as dist
from spmdguard import raise_if_deferred_error, rank_local

WIDTH = 4


def to_numbers(cells):
    if len(cells) != WIDTH:
        raise ValueError(f"expected {WIDTH} cells, got {len(cells)}")
    return [float(cell) for cell in cells]


@rank_local(name="read rows")
def rows(path, count):
    with open(path, newline="") as f:
        lines = csv.reader(f)
        for _ in range(count):
            yield to_numbers(next(lines))


def add_up(path, count):
    total = torch.zeros(WIDTH)
    for row in rows(path, count):
        line = torch.tensor(row)
        dist.all_reduce(line)
        total += line
    return total


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=16)
    parser.add_argument("--stem", default="table")
    opts = parser.parse_args()
    dist.init_process_group("gloo", timeout=timedelta(seconds=45))
    total = add_up(f"{opts.stem}-{dist.get_rank()}.csv", opts.rows)
    dist.barrier()
    dist.destroy_process_group()
    raise_if_deferred_error()
    print(total.tolist())


if __name__ == "__main__":
    main()
