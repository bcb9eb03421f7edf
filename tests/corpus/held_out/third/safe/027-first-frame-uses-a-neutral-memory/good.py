from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn


class SharedNorm(nn.Module):
    def forward(self, x):
        stats = torch.stack([x.sum(), x.pow(2).sum(), torch.tensor(float(x.numel()))]).detach()
        dist.all_reduce(stats)
        mean = stats[0] / stats[2]
        spread = (stats[1] / stats[2] - mean.pow(2)).clamp(min=1e-6).sqrt()
        return (x - mean) / spread


class Stream(nn.Module):
    def __init__(self):
        super().__init__()
        self.refine = nn.Sequential(nn.Linear(6, 3), SharedNorm())
        self.memory = None

    def forward(self, frame, first):
        if first or self.memory is None:
            past = torch.zeros_like(frame)
        else:
            past = self.memory
        out = self.refine(torch.cat([frame, past], 1))
        self.memory = out.detach()
        return out


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    rank = dist.get_rank()
    torch.manual_seed(0)
    net = Stream()
    for step in range(6):
        first = step % (2 + rank) == 0
        out = net(torch.randn(4, 3), first)
    mean = out.mean().detach().reshape(1)
    dist.all_reduce(mean)
    assert mean.abs().item() < 1e-3
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
