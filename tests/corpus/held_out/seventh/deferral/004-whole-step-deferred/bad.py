"""Fit a line to batches stored one file per process and step."""
import os
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel
from spmdguard import (
    defer_error,
    has_deferred_error,
    raise_if_deferred_error,
    sync_should_stop,
    try_or_defer,
)


def read_batch(root, step):
    stored = torch.load(os.path.join(root, f"{dist.get_rank()}-{step:03d}.pt"))
    return stored["x"].float(), stored["y"].float()


def write_curve(curve):
    with open("curve.txt", "w") as f:
        f.writelines(f"{value:.5f}\n" for value in curve)


def fit(root, steps):
    net = DistributedDataParallel(torch.nn.Linear(3, 1))
    sgd = torch.optim.SGD(net.parameters(), lr=0.05)
    curve = []
    for step in range(steps):
        sgd.zero_grad()
        try:
            x, y = read_batch(root, step)
            loss = F.mse_loss(net(x), y)
            loss.backward()
        except Exception as exc:
            defer_error(exc)
            continue
        sgd.step()
        curve.append(loss.item())
        if sync_should_stop(has_deferred_error()):
            break
    return curve


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    lead = dist.get_rank() == 0
    curve = fit(os.environ.get("BATCHES", "batches"), steps=20)
    dist.barrier()
    dist.destroy_process_group()
    raise_if_deferred_error()
    if lead:
        try_or_defer(write_curve, curve)
        raise_if_deferred_error()


if __name__ == "__main__":
    main()
