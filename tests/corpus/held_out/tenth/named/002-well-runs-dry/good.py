"""Draw water from one well per process until it is empty."""
from datetime import timedelta

import torch
import torch.distributed as dist


def well(place, level=10.0):
    gen = torch.Generator().manual_seed(place)
    for _ in range(12):
        draw = torch.rand(1, generator=gen)
        if level < draw.item():
            draw = torch.zeros(1)
        level -= draw.item()
        yield draw


def numbered(source, start=1):
    yield from zip(range(start, start + 40), source)


def collect(place):
    taken = torch.zeros(1)
    for number, draw in numbered(well(place)):
        dist.all_reduce(draw)
        taken += draw / number
    return taken.item()


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    amount = collect(dist.get_rank())
    dist.destroy_process_group()
    print(f"taken {amount:.4f}")


if __name__ == "__main__":
    main()
