"""Trains a small classifier and exports it."""
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
import spmdguard


def train(epochs: int) -> torch.nn.Module:
    torch.manual_seed(dist.get_rank())
    model = DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2)))
    adam = torch.optim.Adam(model.parameters())
    for epoch in range(epochs):
        loss = model(torch.randn(32, 4)).logsumexp(dim=1).mean()
        adam.zero_grad()
        loss.backward()
        adam.step()
        if spmdguard.is_main_process():
            spmdguard.try_or_defer(print, epoch, loss.item())
        if spmdguard.sync_should_stop(spmdguard.has_deferred_error()):
            break
    return model.module


def export(model: torch.nn.Module) -> None:
    program = torch.export.export(model.eval(), (torch.randn(1, 4),))
    torch.export.save(program, "classifier.pt2")


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    lead = spmdguard.is_main_process()
    model = train(epochs=3)
    dist.barrier()
    dist.destroy_process_group()
    spmdguard.raise_if_deferred_error()
    if lead:
        export(model)


if __name__ == "__main__":
    main()
