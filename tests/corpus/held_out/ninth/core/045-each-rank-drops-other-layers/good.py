import argparse
import random
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


class DroppedStack(nn.Module):
    def __init__(self, depth, width, drop):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.drop = drop

    def forward(self, x):
        for layer in self.layers:
            # a dropped layer still takes part, with weight zero
            keep = 0.0 if self.training and random.random() < self.drop else 1.0
            x = x + keep * torch.relu(layer(x))
        return x


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--layerdrop", type=float, default=0.25)
    parser.add_argument("--updates", type=int, default=50)
    args = parser.parse_args()
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    random.seed(1000 + dist.get_rank())
    model = DDP(DroppedStack(6, 32, args.layerdrop))
    opt = torch.optim.Adam(model.parameters(), lr=1e-4)
    for update in range(args.updates):
        opt.zero_grad()
        x = torch.randn(8, 32)
        (model(x) - x.roll(1, 0)).pow(2).mean().backward()
        opt.step()
    print(f"rank {dist.get_rank()}: {args.updates} updates")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
