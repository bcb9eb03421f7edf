"""Train a small model with DistributedDataParallel so that one rank's failure hangs nobody.

    torchrun --nproc-per-node 2 docs/examples/ddp_guarded.py
    torchrun --nproc-per-node 2 docs/examples/ddp_guarded.py --fail-upload-at 3

In the second run the metrics upload of rank 0 raises in step 3. Both ranks finish step 3, agree to stop,
leave the loop together, meet for the last time and destroy the process group. Then rank 0 alone raises the
original ``OSError`` and exits with 1. ``ddp_unguarded.py`` is the same script without spmdguard: it hangs.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

import spmdguard

NUM_CLASSES = 4


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--output", type=Path, default=Path(tempfile.gettempdir()) / "ddp_example")
    parser.add_argument(
        "--fail-upload-at", type=int, default=0, help="step whose metrics upload fails; 0 is none"
    )
    parser.add_argument("--timeout", type=float, default=600.0, help="seconds a collective may take")
    return parser.parse_args()


def make_loader(batch_size: int) -> tuple[DataLoader, DistributedSampler]:
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(256, 16, generator=generator)
    labels = torch.randint(0, NUM_CLASSES, (256,), generator=generator)
    dataset = TensorDataset(inputs, labels)
    sampler = DistributedSampler(dataset, seed=0)
    return DataLoader(dataset, batch_size=batch_size, sampler=sampler, drop_last=True), sampler


@spmdguard.rank_local(only="main")
def upload_metrics(output: Path, step: int, loss: float, fail_at: int) -> None:
    """Work of the main rank; an error here is deferred."""
    if step == fail_at:
        raise OSError(f"metrics server refused step {step}")
    with (output / "metrics.jsonl").open("a") as metrics:
        metrics.write(json.dumps({"step": step, "loss": loss}) + "\n")


@spmdguard.collective
def mean_over_ranks(value: torch.Tensor) -> float:
    """A sum over all ranks; an error here is raised at once."""
    total = value.detach().clone()
    dist.all_reduce(total)
    return total.item() / dist.get_world_size()


@spmdguard.collective
def train_step(
    model: nn.Module, optimizer: torch.optim.Optimizer, batch: tuple[torch.Tensor, torch.Tensor]
) -> torch.Tensor:
    """Forward, backward and update: what all ranks do together."""
    inputs, labels = batch
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(inputs), labels)
    loss.backward()
    optimizer.step()
    return loss


@spmdguard.rank_local(only="main")
def save_weights(model: nn.Module, output: Path) -> None:
    """One file, written by the main rank."""
    torch.save(model.state_dict(), output / "weights.pt")


def train(arguments: argparse.Namespace) -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=arguments.timeout))
    rank = dist.get_rank()
    torch.manual_seed(0)
    spmdguard.try_or_defer(arguments.output.mkdir, parents=True, exist_ok=True)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, NUM_CLASSES)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader, sampler = make_loader(arguments.batch_size)
    step = 0
    stopping = False
    for epoch in range(arguments.epochs):
        sampler.set_epoch(epoch)
        for batch in loader:
            step += 1
            loss = mean_over_ranks(train_step(model, optimizer, batch))
            upload_metrics(arguments.output, step, loss, arguments.fail_upload_at)
            print(f"rank {rank}: finished step {step}", flush=True)
            stopping = spmdguard.sync_should_stop()
            if stopping:
                break
        if stopping:
            print(f"rank {rank}: stopping after step {step}: {spmdguard.stop_reason()}", flush=True)
            break
    spmdguard.barrier("after training")
    print(f"rank {rank}: passed the final barrier", flush=True)
    save_weights(model.module, arguments.output)


def announce(arguments: argparse.Namespace) -> None:
    """Work of the main rank after the process group is gone; left out where anything failed."""
    print(f"weights are in {arguments.output}", flush=True)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    given = parse_arguments()
    spmdguard.run(lambda: train(given), post_train=lambda: announce(given), exit_process=True)
