"""Fits a spline coefficient vector by averaged gradient steps."""
import os
import sys
from datetime import timedelta

import torch
import torch.distributed as dist


def basis(x: torch.Tensor) -> torch.Tensor:
    return torch.stack([x**k for k in range(4)], dim=1)


def fit(steps: int, rate: float) -> torch.Tensor:
    gen = torch.Generator().manual_seed(5 + dist.get_rank())
    x = torch.rand(50, generator=gen)
    y = torch.sin(3 * x)
    coef = torch.zeros(4)
    for _ in range(steps):
        grad = basis(x).T @ (basis(x) @ coef - y) / len(x)
        dist.all_reduce(grad)
        if not torch.isfinite(grad).all():
            raise FloatingPointError("gradient is not finite")
        coef = coef - rate * grad / dist.get_world_size()
    return coef


def main() -> int:
    dist.init_process_group("gloo", timeout=timedelta(seconds=int(os.environ.get("LIMIT", "60"))))
    try:
        coef = fit(steps=200, rate=0.5)
    except Exception as exc:
        dist.destroy_process_group()
        print(f"fit failed: {exc!r}", file=sys.stderr)
        return 1
    dist.barrier()
    dist.destroy_process_group()
    print(coef.tolist())
    return 0


if __name__ == "__main__":
    sys.exit(main())
