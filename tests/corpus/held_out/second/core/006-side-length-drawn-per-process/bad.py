import argparse
import random
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn.functional as F

SIDES = (24, 32, 40)


def features(net, images, side):
    small = F.interpolate(images, size=(side, side), mode="bilinear")
    return net(small).contiguous()


def bank(maps):
    """Feature maps of all processes, those of the first one first."""
    shelf = [torch.zeros_like(maps) for _ in range(dist.get_world_size())]
    dist.all_gather(shelf, maps)
    return torch.cat(shelf)


def main():
    cli = argparse.ArgumentParser()
    cli.add_argument("--steps", type=int, default=12)
    cfg = cli.parse_args()
    dist.init_process_group("gloo", timeout=timedelta(seconds=45))
    rank = dist.get_rank()
    random.seed(1000 + rank)
    torch.manual_seed(7)
    net = torch.nn.Conv2d(3, 4, 3, padding=1).requires_grad_(False)
    norm = 0.0
    for step in range(cfg.steps):
        images = torch.rand(2, 3, 48, 48)
        side = random.choice(SIDES)
        norm += bank(features(net, images, side)).norm().item()
    if rank == 0:
        print(f"mean norm {norm / cfg.steps:.3f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
