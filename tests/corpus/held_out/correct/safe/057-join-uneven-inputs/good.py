"""Train on uneven per-rank logs with DDP's join context."""
import csv
import os
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


class LogFile:
    """Rows (features..., label) of the files that fall to this rank."""

    def __init__(self, paths, batch):
        self.paths, self.batch = paths, batch

    def rows(self):
        for path in self.paths:
            with open(path, newline="") as f:
                for row in csv.reader(f):
                    yield [float(v) for v in row]

    def __iter__(self):
        chunk = []
        for row in self.rows():
            chunk.append(row)
            if len(chunk) == self.batch:
                yield self._tensors(chunk)
                chunk = []
        if chunk:
            yield self._tensors(chunk)

    @staticmethod
    def _tensors(chunk):
        t = torch.tensor(chunk)
        return t[:, :-1], t[:, -1:]


def write_demo_files(folder, files, width):
    gen = torch.Generator().manual_seed(0)
    folder.mkdir(parents=True, exist_ok=True)
    for i in range(files):
        n = int(torch.randint(50, 400, (1,), generator=gen))
        x = torch.randn(n, width, generator=gen)
        y = (x.sum(1, keepdim=True) > 0).float()
        with open(folder / f"log-{i:03d}.csv", "w", newline="") as f:
            csv.writer(f).writerows(torch.cat([x, y], 1).tolist())


def train_epoch(model, data, optimizer, device):
    """Returns local sums; the join context is over when this returns."""
    total, rows = 0.0, 0
    model.train()
    with model.join(divide_by_initial_world_size=False):
        for x, y in data:
            x, y = x.to(device), y.to(device)
            loss = nn.functional.binary_cross_entropy_with_logits(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(x)
            rows += len(x)
    return total, rows


def reduce_sums(*values, device):
    t = torch.tensor(values, dtype=torch.float64, device=device)
    dist.all_reduce(t)
    return t.tolist()


def drift(net, device):
    """Zero if all ranks ended with the same weights."""
    flat = torch.cat([p.detach().flatten() for p in net.parameters()])
    low, high = flat.clone(), flat.clone()
    dist.all_reduce(low, op=dist.ReduceOp.MIN)
    dist.all_reduce(high, op=dist.ReduceOp.MAX)
    return (high - low).abs().max().item()


def main():
    cuda = torch.cuda.is_available()
    local = int(os.environ.get("LOCAL_RANK", 0))
    device = torch.device("cuda", local) if cuda else torch.device("cpu")
    if cuda:
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if cuda else "gloo", timeout=timedelta(minutes=10))
    rank, world = dist.get_rank(), dist.get_world_size()

    width = 12
    folder = Path(os.environ.get("LOGS", "join-logs"))
    if rank == 0 and not folder.exists():
        write_demo_files(folder, files=2 * world + 1, width=width)
    dist.barrier()
    mine = sorted(folder.glob("*.csv"))[rank::world]
    data = LogFile(mine, batch=16)

    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(width, 64), nn.ReLU(), nn.Linear(64, 1)).to(device)
    model = DDP(net, device_ids=[local] if cuda else None)
    # plain SGD: a rank that is done early takes the final weights by broadcast, not the moments
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(10):
        total, rows = train_epoch(model, data, optimizer, device)
        all_total, all_rows = reduce_sums(total, rows, device=device)
        gap = drift(net, device)
        if rank == 0:
            print(f"epoch {epoch}: loss {all_total / max(all_rows, 1):.4f} over {all_rows:.0f} rows, drift {gap:.1e}")
    if rank == 0:
        torch.save(net.state_dict(), "joined.pt")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
