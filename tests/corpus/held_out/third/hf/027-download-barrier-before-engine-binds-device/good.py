import argparse

import deepspeed
import torch
import torch.distributed as dist
import torchvision
from torch import nn
from torchvision import transforms


class SmallConv(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 32, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3), nn.ReLU())
        self.out = nn.LazyLinear(10)

    def forward(self, x):
        return self.out(self.features(x).flatten(1))


def dataset(root):
    convert = transforms.Compose([transforms.ToTensor(), transforms.Normalize((0.5,) * 3, (0.5,) * 3)])
    if dist.get_rank() == 0:
        torchvision.datasets.CIFAR10(root, train=True, download=True)
    dist.barrier()
    return torchvision.datasets.CIFAR10(root, train=True, download=False, transform=convert)


def main():
    cli = argparse.ArgumentParser()
    cli.add_argument("--local_rank", type=int, default=-1)
    cli.add_argument("--root", default="./data")
    cli = deepspeed.add_config_arguments(cli)
    args = cli.parse_args()
    torch.cuda.set_device(args.local_rank)
    deepspeed.init_distributed()
    data = dataset(args.root)
    net = SmallConv()
    net(torch.zeros(1, 3, 32, 32))
    engine, _, loader, _ = deepspeed.initialize(
        args=args, model=net, model_parameters=net.parameters(), training_data=data
    )
    for epoch in range(5):
        for image, label in loader:
            loss = nn.functional.cross_entropy(engine(image.to(engine.device)), label.to(engine.device))
            engine.backward(loss)
            engine.step()


if __name__ == "__main__":
    main()
