"""The script of ``ddp_guarded.py`` as it is often written, without spmdguard. It hangs.

    torchrun --nproc-per-node 2 docs/examples/ddp_unguarded.py --fail-upload-at 3

The metrics upload of rank 0 raises in step 3, rank 0 leaves the loop, and rank 1 waits in the all_reduce of
step 4 for a partner that waits in a barrier. ``spmdguard lint docs/examples`` shows why, without running it:

* an early return past a barrier (``evaluate``),
* a stop decision that the ranks do not share (the loop in ``train``),
* an error raised again before the process group is destroyed (``main``).
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


def upload_metrics(output: Path, step: int, loss: float, fail_at: int) -> None:
    if step == fail_at:
        raise OSError(f"metrics server refused step {step}")
    with (output / "metrics.jsonl").open("a") as metrics:
        metrics.write(json.dumps({"step": step, "loss": loss}) + "\n")


def mean_over_ranks(value: torch.Tensor) -> float:
    total = value.detach().clone()
    dist.all_reduce(total)
    return total.item() / dist.get_world_size()


def train_step(
    model: nn.Module, optimizer: torch.optim.Optimizer, batch: tuple[torch.Tensor, torch.Tensor]
) -> torch.Tensor:
    inputs, labels = batch
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(inputs), labels)
    loss.backward()
    optimizer.step()
    return loss


def evaluate(model: nn.Module, output: Path) -> None:
    rank = dist.get_rank()
    if rank == 0 and not (output / "metrics.jsonl").exists():
        print("nothing to evaluate")
        return
    with torch.no_grad():
        correct = mean_over_ranks((model(torch.randn(8, 16)).argmax(-1) == 0).float().mean())
    dist.barrier()
    if rank == 0:
        print(f"share of class 0: {correct:.2f}")


def train(arguments: argparse.Namespace) -> None:
    rank = dist.get_rank()
    torch.manual_seed(0)
    arguments.output.mkdir(parents=True, exist_ok=True)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, NUM_CLASSES)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader, sampler = make_loader(arguments.batch_size)
    step = 0
    should_stop = False
    failure: OSError | None = None
    for epoch in range(arguments.epochs):
        sampler.set_epoch(epoch)
        for batch in loader:
            step += 1
            loss = mean_over_ranks(train_step(model, optimizer, batch))
            if rank == 0:
                try:
                    upload_metrics(arguments.output, step, loss, arguments.fail_upload_at)
                except OSError as error:
                    failure = error
                    should_stop = True
            print(f"rank {rank}: finished step {step}", flush=True)
            if should_stop:
                break
        if should_stop:
            break
    dist.barrier()
    print(f"rank {rank}: passed the final barrier", flush=True)
    evaluate(model.module, arguments.output)
    if failure is not None:
        raise failure


def main() -> None:
    arguments = parse_arguments()
    dist.init_process_group("gloo", timeout=timedelta(seconds=arguments.timeout))
    try:
        train(arguments)
    except OSError:
        print("training failed", flush=True)
        raise
    dist.destroy_process_group()


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
