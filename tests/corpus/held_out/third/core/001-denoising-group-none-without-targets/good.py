import argparse
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class QueryDetector(nn.Module):
    def __init__(self, dim=32, classes=5):
        super().__init__()
        self.backbone = nn.Linear(24, dim)
        self.label_embed = nn.Embedding(classes, dim)
        self.head = nn.Linear(dim, classes)

    def noisy_queries(self, targets):
        counts = [len(t) for t in targets]
        if max(counts) == 0:
            return self.label_embed(torch.zeros(1, dtype=torch.long)), 0.0
        labels = torch.cat([t for t in targets if len(t)])
        return self.label_embed(labels), 1.0

    def forward(self, images, targets):
        feats = self.backbone(images)
        extra, weight = self.noisy_queries(targets)
        loss = self.head(feats).pow(2).mean()
        return loss + weight * self.head(extra).abs().mean()


def batch_for(rank, it):
    images = torch.randn(2, 24)
    boxes = 0 if (rank + it) % 4 == 3 else 2
    return images, [torch.randint(0, 5, (boxes,)) for _ in range(2)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--iters", type=int, default=8)
    opts = parser.parse_args()
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    rank = dist.get_rank()
    net = DistributedDataParallel(QueryDetector())
    optim = torch.optim.AdamW(net.parameters(), lr=1e-3)
    for it in range(opts.iters):
        images, targets = batch_for(rank, it)
        loss = net(images, targets)
        optim.zero_grad()
        loss.backward()
        optim.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
