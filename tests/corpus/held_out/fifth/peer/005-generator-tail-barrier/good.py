import random

import torch
import torch.distributed as dist


def epochs(count):
    for epoch in range(count):
        random.seed(epoch)
        yield epoch
        dist.barrier()


def batches(rank, n=30):
    gen = torch.Generator().manual_seed(rank)
    for _ in range(n):
        x = torch.randn(32, 16, generator=gen)
        yield x, x.sum(1, keepdim=True)


def one_epoch(model, opt, rank):
    total, seen = 0.0, 0
    for x, y in batches(rank):
        loss = (model(x) - y).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        total, seen = total + loss.item(), seen + 1
    return total / seen


def main(target=0.05):
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    model = torch.nn.Linear(16, 1)
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in epochs(40):
        mean = torch.tensor([one_epoch(model, opt, rank)])
        dist.all_reduce(mean)
        mean /= world
        if rank == 0:
            print("epoch", epoch, mean.item())
        if mean.item() < target:
            break
    for p in model.parameters():
        dist.all_reduce(p.data)
        p.data /= world
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
