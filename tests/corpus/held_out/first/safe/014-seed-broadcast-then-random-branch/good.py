import random

import torch
import torch.distributed as dist


def shared_rng():
    seed = torch.zeros(1, dtype=torch.int64)
    if dist.get_rank() == 0:
        seed.random_(0, 2**31 - 1)
    dist.broadcast(seed, src=0)
    return random.Random(seed.item())


def main():
    dist.init_process_group("gloo")
    rng = shared_rng()
    rank = dist.get_rank()
    torch.manual_seed(1000 + rank)
    taken = 0
    for _ in range(20):
        noise = torch.rand(3)
        if rng.random() < 0.3:
            dist.all_reduce(noise, op=dist.ReduceOp.MAX)
            taken += 1
        size = rng.choice((16, 32, 64))
        canvas = torch.zeros(size) + noise.sum()
        dist.all_reduce(canvas)
    print(rank, taken)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
