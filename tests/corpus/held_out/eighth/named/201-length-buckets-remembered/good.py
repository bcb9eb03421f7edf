"""Scale the loss by how common a sequence length is over all processes."""
import random
from datetime import timedelta

import torch
import torch.distributed as dist


def weight_of(length: int) -> float:
    count = torch.tensor([float(length)])
    dist.all_reduce(count, op=dist.ReduceOp.MAX)
    return length / count.item()


def epoch(steps: int) -> float:
    rng = random.Random(90 + dist.get_rank())
    total = 0.0
    for _ in range(steps):
        length = rng.choice([16, 32, 48, 64])
        batch = torch.randn(2, length)
        total += weight_of(length) * batch.pow(2).mean().item()
    return total / steps


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    value = epoch(12)
    dist.destroy_process_group()
    print(f"{value:.4f}")


if __name__ == "__main__":
    main()
