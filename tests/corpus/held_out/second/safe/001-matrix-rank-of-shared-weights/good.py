"""Low-rank compression of a layer that is averaged over the processes first."""
from datetime import timedelta

import torch
import torch.distributed as dist


def averaged(weight):
    dist.all_reduce(weight)
    return weight / dist.get_world_size()


def compress(weight, tol=1e-4):
    rank = int(torch.linalg.matrix_rank(weight, tol=tol))
    left, values, right = torch.linalg.svd(weight, full_matrices=False)
    factors = [left[:, :rank] * values[:rank], right[:rank]]
    if rank < min(weight.shape):
        for factor in factors:
            dist.broadcast(factor.contiguous(), src=0)
    return rank, factors


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    gen = torch.Generator().manual_seed(3)
    thin = torch.randn(12, 4, generator=gen) @ torch.randn(4, 10, generator=gen)
    dist.broadcast(thin, src=0)
    rank, factors = compress(averaged(thin))
    error = (factors[0] @ factors[1] - thin).abs().max().item()
    assert error < 1e-2
    print("rank", rank, "error", error)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
