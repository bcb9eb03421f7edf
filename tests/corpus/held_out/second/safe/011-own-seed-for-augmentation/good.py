import random
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


class Augment:
    def __init__(self, rank, chance=0.5):
        self.random = random.Random(900 + rank)
        self.gen = torch.Generator().manual_seed(900 + rank)
        self.chance = chance

    def __call__(self, images):
        if self.random.random() < self.chance:
            images = images.flip(-1)
        if self.random.random() < self.chance:
            return images + 0.1 * torch.randn(images.shape, generator=self.gen)
        return images


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    rank = dist.get_rank()
    augment = Augment(rank)
    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Linear(64, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(10):
        images = augment(torch.rand(8, 8, 8)).flatten(1)
        loss = model(images).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if rank == 0:
        print(loss.item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
