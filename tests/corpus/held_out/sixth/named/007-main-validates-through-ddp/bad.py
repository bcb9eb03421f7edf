"""CNN with validation on the first rank."""
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def cnn(classes=10):
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
        nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.BatchNorm2d(32), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, classes),
    )


@torch.no_grad()
def validate(model, batches=20):
    model.eval()
    hits = 0
    for _ in range(batches):
        x, y = torch.randn(64, 1, 28, 28).cuda(), torch.randint(10, (64,)).cuda()
        hits += (model(x).argmax(1) == y).sum().item()
    model.train()
    return hits / (64 * batches)


def main(epochs=10):
    local = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    dist.init_process_group("nccl")
    model = DDP(cnn().cuda(), device_ids=[local])
    opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for epoch in range(epochs):
        for _ in range(200):
            x, y = torch.randn(64, 1, 28, 28).cuda(), torch.randint(10, (64,)).cuda()
            loss = nn.functional.cross_entropy(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        if dist.get_rank() == 0:
            print(epoch, validate(model))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
