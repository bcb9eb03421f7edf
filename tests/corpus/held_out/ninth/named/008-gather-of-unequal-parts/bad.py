"""Collects the outliers of all processes."""
from datetime import timedelta

import torch
import torch.distributed as dist


def outliers(values: torch.Tensor, limit: float) -> torch.Tensor:
    return values[values.abs() > limit]


def collect(mine: torch.Tensor) -> torch.Tensor:
    parts = [torch.empty_like(mine) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, mine)
    return torch.cat(parts)


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    gen = torch.Generator().manual_seed(dist.get_rank())
    values = torch.randn(500, generator=gen)
    found = collect(outliers(values, limit=2.5))
    dist.destroy_process_group()
    print(len(found), found.sort().values.tolist())


if __name__ == "__main__":
    main()
