import os
from datetime import timedelta

import torch
import torch.distributed as dist


def wanted_rounds() -> int:
    return int(os.environ.get("ROUNDS", "5"))


def agree(value: int) -> int:
    cell = torch.tensor([value])
    dist.broadcast(cell, src=0)
    return int(cell.item())


def power_iteration(matrix: torch.Tensor, rounds: int) -> float:
    vector = torch.ones(matrix.shape[1])
    for _ in range(rounds):
        product = matrix.T @ (matrix @ vector)
        dist.all_reduce(product)
        vector = product / product.norm()
    image = (matrix @ vector).pow(2).sum().reshape(1)
    dist.all_reduce(image)
    return image.sqrt().item()


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    rank = dist.get_rank()
    rounds = agree(wanted_rounds() if rank == 0 else 0)
    gen = torch.Generator().manual_seed(rank)
    print(power_iteration(torch.randn(30, 6, generator=gen), rounds))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
