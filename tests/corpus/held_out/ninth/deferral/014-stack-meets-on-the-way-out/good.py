"""Quantiles of values that are spread over the job."""
import contextlib
from datetime import timedelta

import torch
import torch.distributed as dist


def load(path: str) -> torch.Tensor:
    with open(path) as f:
        return torch.tensor([float(line) for line in f])


def bounds(values: torch.Tensor) -> tuple[float, float]:
    low, high = values.min().reshape(1), values.max().reshape(1)
    dist.all_reduce(low, op=dist.ReduceOp.MIN)
    dist.all_reduce(high, op=dist.ReduceOp.MAX)
    return low.item(), high.item()


def quantiles(values: torch.Tensor, bins: int = 50) -> list[float]:
    low, high = bounds(values)
    counts = torch.histc(values, bins=bins, min=low, max=high)
    dist.all_reduce(counts)
    share = counts.cumsum(0) / counts.sum()
    return [low + (high - low) * (share < q).sum().item() / bins for q in (0.25, 0.5, 0.75)]


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    try:
        found = quantiles(load(f"values-{dist.get_rank()}.txt"))
    except Exception:
        with contextlib.suppress(Exception):
            dist.destroy_process_group()
        raise
    dist.barrier()
    dist.destroy_process_group()
    print(found)


if __name__ == "__main__":
    main()
