"""Collects the outliers of all processes."""
from datetime import timedelta

import torch
import torch.distributed as dist


def outliers(values: torch.Tensor, limit: float) -> torch.Tensor:
    return values[values.abs() > limit]


def collect(mine: torch.Tensor) -> torch.Tensor:
    count = torch.tensor([len(mine)])
    counts = [torch.empty_like(count) for _ in range(dist.get_world_size())]
    dist.all_gather(counts, count)
    longest = max(int(c) for c in counts)
    padded = torch.zeros(longest)
    padded[: len(mine)] = mine
    parts = [torch.empty_like(padded) for _ in counts]
    dist.all_gather(parts, padded)
    return torch.cat([part[: int(c)] for part, c in zip(parts, counts)])


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    gen = torch.Generator().manual_seed(dist.get_rank())
    values = torch.randn(500, generator=gen)
    found = collect(outliers(values, limit=2.5))
    dist.destroy_process_group()
    print(len(found), found.sort().values.tolist())


if __name__ == "__main__":
    main()
