from __future__ import annotations

from datetime import timedelta
from typing import Iterator

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from spmdguard import deferring, has_deferred_error, raise_if_deferred_error, sync_should_stop


class Spectra:
    """Synthetic spectra; a bad file now and then has no peak at all."""

    def __init__(self, count: int, bins: int = 32):
        self.gen = torch.Generator().manual_seed(900 + dist.get_rank())
        self.count, self.bins = count, bins

    def __iter__(self) -> Iterator[torch.Tensor]:
        for _ in range(self.count):
            yield torch.rand(8, self.bins, generator=self.gen)


def scaled(rows: torch.Tensor) -> torch.Tensor:
    peak = rows.amax(dim=1, keepdim=True)
    if (peak < 0.5).any():
        raise ValueError("spectrum without a peak")
    return rows / peak


def train(epochs: int = 3) -> torch.nn.Module:
    net = torch.nn.Sequential(torch.nn.Linear(32, 8), torch.nn.ReLU(), torch.nn.Linear(8, 32))
    model = DistributedDataParallel(net)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(epochs):
        for rows in Spectra(count=12):
            with deferring("scaling"):
                clean = scaled(rows)
            if sync_should_stop(has_deferred_error()):
                return net
            optimizer.zero_grad()
            loss = torch.nn.functional.mse_loss(model(clean), clean)
            loss.backward()
            optimizer.step()
    return net


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=45))
    net = train()
    dist.barrier()
    dist.destroy_process_group()
    raise_if_deferred_error()
    print(sum(p.numel() for p in net.parameters()), "weights trained")


if __name__ == "__main__":
    main()
