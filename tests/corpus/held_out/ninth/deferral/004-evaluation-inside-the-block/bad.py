"""Linear probe with an accuracy that is computed over all processes."""
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
import spmdguard


def evaluate(model: torch.nn.Module, rows: torch.Tensor, labels: torch.Tensor) -> float:
    with torch.no_grad():
        hits = (model(rows).argmax(dim=1) == labels).sum()
    counts = torch.stack([hits, torch.tensor(len(labels))])
    dist.all_reduce(counts)
    return (counts[0] / counts[1]).item()


def note(epoch: int, accuracy: float) -> None:
    with open("accuracy.txt", "a") as f:
        f.write(f"{epoch}\t{accuracy:.4f}\n")


def probe(epochs: int) -> None:
    gen = torch.Generator().manual_seed(dist.get_rank())
    rows, labels = torch.randn(64, 8, generator=gen), torch.randint(0, 2, (64,), generator=gen)
    net = DistributedDataParallel(torch.nn.Linear(8, 2))
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(epochs):
        opt.zero_grad()
        torch.nn.functional.cross_entropy(net(rows), labels).backward()
        opt.step()
        with spmdguard.deferring("evaluation"):
            accuracy = evaluate(net.module, rows, labels)
            if spmdguard.is_main_process():
                note(epoch, accuracy)
        if spmdguard.sync_should_stop(spmdguard.has_deferred_error()):
            break


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=90))
    probe(epochs=4)
    dist.barrier()
    dist.destroy_process_group()
    spmdguard.raise_if_deferred_error()


if __name__ == "__main__":
    main()
