import os

import torch
import torch.distributed
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel


class ConfusionBalancedLoss(nn.Module):
    """Cross entropy whose weights follow a running confusion matrix."""

    def __init__(self, num_classes, momentum=0.99):
        super().__init__()
        self.num_classes = num_classes
        self.momentum = momentum
        self.register_buffer("confusion", torch.eye(num_classes))

    @torch.no_grad()
    def _update(self, logits, labels):
        pos = (labels < self.num_classes).nonzero().flatten()
        if pos.numel() > 0:
            pred = logits[pos].argmax(dim=1)
            flat = labels[pos] * self.num_classes + pred
            hist = torch.bincount(flat, minlength=self.num_classes ** 2).float()
            torch.distributed.all_reduce(hist)
            hist = hist.view_as(self.confusion)
            hist = hist / hist.sum(dim=1, keepdim=True).clamp(min=1)
            self.confusion.mul_(self.momentum).add_(hist, alpha=1 - self.momentum)

    def forward(self, logits, labels):
        self._update(logits[:, : self.num_classes], labels)
        weight = 1.0 + (1.0 - self.confusion.diagonal())
        background = weight.new_ones(1)
        return F.cross_entropy(logits, labels, weight=torch.cat([weight, background]))


class RoIHead(nn.Module):
    def __init__(self, num_classes):
        super().__init__()
        self.fc = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, num_classes + 1))

    def forward(self, rois):
        return self.fc(rois)


def sample_rois(generator, num_classes):
    rois = torch.randn(64, 256, generator=generator)
    labels = torch.full((64,), num_classes)
    n_pos = max(0, int(torch.randint(-4, 16, (1,), generator=generator)))
    labels[:n_pos] = torch.randint(0, num_classes, (n_pos,), generator=generator)
    return rois, labels


def main():
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    torch.distributed.init_process_group("nccl")
    rank = torch.distributed.get_rank()
    classes = 80
    head = DistributedDataParallel(RoIHead(classes).to(device), device_ids=[device.index])
    criterion = ConfusionBalancedLoss(classes).to(device)
    optimizer = torch.optim.SGD(head.parameters(), lr=0.02, momentum=0.9)
    rng = torch.Generator().manual_seed(rank)
    for it in range(2000):
        rois, labels = sample_rois(rng, classes)
        loss = criterion(head(rois.to(device)), labels.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == 0 and it % 100 == 0:
            print(f"iter {it}: {loss.item():.3f}")
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
