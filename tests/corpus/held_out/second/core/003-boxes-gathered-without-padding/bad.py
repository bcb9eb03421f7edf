"""Detections above a score, collected on every process."""
from datetime import timedelta

import torch
import torch.distributed as dist


def detect(images, gen, threshold=0.6):
    boxes = torch.rand(len(images) * 10, 4, generator=gen)
    scores = torch.rand(len(boxes), 1, generator=gen)
    found = torch.cat([boxes, scores], dim=1)
    return found[found[:, 4] > threshold]


def collect(found):
    parts = [torch.empty_like(found) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, found)
    return torch.cat(parts)


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=40))
    gen = torch.Generator().manual_seed(31 + dist.get_rank())
    images = torch.rand(6, 3, 8, 8, generator=gen)
    everything = collect(detect(images, gen))
    if dist.get_rank() == 0:
        print(everything.shape, everything[:, 4].mean().item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
