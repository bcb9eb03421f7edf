from contextlib import suppress
from datetime import timedelta

import torch
import torch.distributed as dist


def total_of(lines: list[str]) -> float:
    total = 0.0
    for line in lines:
        with suppress(ValueError):
            value = torch.tensor([float(line)])
            dist.all_reduce(value)
            total += value.item()
    return total


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    with open(f"numbers-{dist.get_rank()}.txt") as source:
        lines = source.read().splitlines()[:100]
    print(total_of(lines))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
