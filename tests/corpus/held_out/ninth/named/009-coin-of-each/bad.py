"""Gossip with a consistency check now and then."""
import random
from datetime import timedelta

import torch
import torch.distributed as dist


class Check:
    def __init__(self, chance: float):
        self.chance = chance
        self.coin = random.Random()

    @property
    def due(self) -> bool:
        return self.coin.random() < self.chance


def same_everywhere(weights: torch.Tensor) -> bool:
    low, high = weights.clone(), weights.clone()
    dist.all_reduce(low, op=dist.ReduceOp.MIN)
    dist.all_reduce(high, op=dist.ReduceOp.MAX)
    return torch.equal(low, high)


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    check, weights = Check(chance=0.2), torch.zeros(4)
    for _ in range(30):
        push = torch.randn(4)
        dist.all_reduce(push)
        weights += push
        if check.due and not same_everywhere(weights):
            raise RuntimeError("weights differ between processes")
    dist.destroy_process_group()
    print(weights.tolist())


if __name__ == "__main__":
    main()
