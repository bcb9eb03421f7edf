"""Network with one head for bright and one for dark images."""
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class TwoHeads(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Flatten(), nn.Linear(16, 8), nn.ReLU())
        self.bright = nn.Linear(8, 2)
        self.dark = nn.Linear(8, 2)

    def forward(self, images):
        features = self.trunk(images)
        light = (images.mean() > 0.5).to(features.dtype)
        return light * self.bright(features) + (1 - light) * self.dark(features)


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    gen = torch.Generator().manual_seed(dist.get_rank())
    model = DistributedDataParallel(TwoHeads())
    opt = torch.optim.AdamW(model.parameters())
    for _ in range(5):
        images = torch.rand(3, 4, 4, generator=gen)
        loss = model(images).logsumexp(dim=1).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
