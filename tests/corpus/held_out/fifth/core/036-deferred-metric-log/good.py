import os
import sys
import time

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler
from torchmetrics import MetricCollection
from torchmetrics.classification import MulticlassAccuracy, MulticlassF1Score


class Console:
    """Messages are built lazily, so that silent ranks pay nothing."""

    def __init__(self, enabled, stream=sys.stdout):
        self.enabled = enabled
        self.stream = stream
        self.t0 = time.time()

    def __call__(self, message):
        if self.enabled:
            text = message() if callable(message) else message
            print(f"[{time.time() - self.t0:7.1f}s] {text}", file=self.stream, flush=True)


def fmt(values):
    return ", ".join(f"{k} {v.item():.4f}" for k, v in sorted(values.items()))


def make_data(n, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 50, generator=g)
    return TensorDataset(x, x[:, :7].argmax(dim=1))


@torch.no_grad()
def test(model, loader, metrics, device, console, epoch):
    model.eval()
    metrics.reset()
    for x, y in loader:
        metrics.update(model.module(x.to(device)), y.to(device))
    values = metrics.compute()
    console(lambda: f"epoch {epoch}: {fmt(values)}")
    model.train()


def main():
    local_rank = int(os.environ["LOCAL_RANK"])
    device = torch.device("cuda", local_rank)
    torch.cuda.set_device(device)
    dist.init_process_group("nccl")
    console = Console(enabled=dist.get_rank() == 0)
    train_set, test_set = make_data(40_000, 0), make_data(4_000, 1)
    sampler = DistributedSampler(train_set)
    train_loader = DataLoader(train_set, batch_size=64, sampler=sampler)
    test_loader = DataLoader(test_set, 256, sampler=DistributedSampler(test_set, shuffle=False))
    net = nn.Sequential(nn.Linear(50, 128), nn.ReLU(), nn.Linear(128, 7)).to(device)
    model = DDP(net, device_ids=[local_rank])
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    metrics = MetricCollection(
        {"acc": MulticlassAccuracy(7), "f1": MulticlassF1Score(7, average="macro")}
    ).to(device)
    for epoch in range(10):
        sampler.set_epoch(epoch)
        for x, y in train_loader:
            loss = nn.functional.cross_entropy(model(x.to(device)), y.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        console(f"epoch {epoch}: loss {loss.item():.4f}")
        test(model, test_loader, metrics, device, console, epoch)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
