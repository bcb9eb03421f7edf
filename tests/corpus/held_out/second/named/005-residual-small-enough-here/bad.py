"""Jacobi iteration on blocks that share their mean."""
import argparse
from datetime import timedelta

import torch
import torch.distributed as dist


def shared_mean(block: torch.Tensor) -> torch.Tensor:
    mean = block.mean().reshape(1)
    dist.all_reduce(mean)
    return mean / dist.get_world_size()


def residual(block: torch.Tensor, rhs: torch.Tensor, mean: torch.Tensor) -> float:
    return (3 * block - mean - rhs).abs().max().item()


def solve(rhs: torch.Tensor, tol: float) -> tuple[torch.Tensor, int]:
    block, error, count = torch.zeros_like(rhs), float("inf"), 0
    while error > tol:
        mean = shared_mean(block)
        block = (rhs + mean) / 3
        error = residual(block, rhs, shared_mean(block))
        count += 1
    return block, count


def main() -> None:
    cli = argparse.ArgumentParser()
    cli.add_argument("--tol", type=float, default=1e-5)
    opts = cli.parse_args()
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    gen = torch.Generator().manual_seed(dist.get_rank())
    rhs = torch.rand(100, generator=gen) * 10 ** dist.get_rank()
    block, count = solve(rhs, opts.tol)
    dist.destroy_process_group()
    print(count, block.norm().item())


if __name__ == "__main__":
    main()
