import random

import torch
import torch.distributed as dist


def augment(x):
    if random.random() < 0.5:
        x = x.flip(0)
    if random.random() < 0.2:
        return x * 0
    return x + torch.randn_like(x)


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    random.seed(1234 + rank)
    torch.manual_seed(1234 + rank)
    weight = torch.zeros(4)
    for _ in range(6):
        grad = augment(torch.arange(4.0))
        dist.all_reduce(grad)
        weight -= 0.01 * grad
    rows = [torch.zeros(4) for _ in range(dist.get_world_size())]
    dist.all_gather(rows, weight)
    assert all(torch.equal(row, rows[0]) for row in rows)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
