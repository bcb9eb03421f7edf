"""Iterable tar shards: streams of unlike length made equal before training."""
import io
import itertools
import os
import random
import tarfile
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


def read_tar(path):
    with tarfile.open(path) as tar:
        for member in tar:
            if member.isfile() and member.name.endswith(".pt"):
                blob = tar.extractfile(member).read()
                yield torch.load(io.BytesIO(blob))


class ShardStream(IterableDataset):
    """Endless: whole shards drawn with replacement, then a small shuffle buffer."""

    def __init__(self, shards, seed, buffer=512):
        self.shards, self.seed, self.buffer = list(shards), seed, buffer

    def __iter__(self):
        info = get_worker_info()
        rng = random.Random(self.seed * 1009 + (info.id if info else 0))
        held = []
        while True:
            for sample in read_tar(rng.choice(self.shards)):
                if len(held) < self.buffer:
                    held.append(sample)
                    continue
                at = rng.randrange(self.buffer)
                held[at], sample = sample, held[at]
                yield sample


class FiniteShards(IterableDataset):
    """One pass over this rank's validation shards; lengths differ by rank."""

    def __init__(self, shards):
        self.shards = list(shards)

    def __iter__(self):
        for path in self.shards:
            yield from read_tar(path)


def split_by_rank(paths, rank, world):
    return paths[rank::world]


def agreed_epoch_batches(shards, batch, device):
    """The smallest local estimate over ranks, so that nobody waits for anyone."""
    local = sum(1 for path in shards for _ in read_tar(path)) // batch
    t = torch.tensor([local], device=device)
    dist.all_reduce(t, op=dist.ReduceOp.MIN)
    return max(1, int(t.item()))


def collate(samples):
    return torch.stack([s["x"] for s in samples]), torch.tensor([s["y"] for s in samples])


@torch.no_grad()
def validate(net, loader, device):
    """Local passes of any length on the bare network, then a single reduction."""
    net.eval()
    tally = torch.zeros(2, device=device)
    for x, y in loader:
        tally[0] += (net(x.to(device)).argmax(1) == y.to(device)).sum()
        tally[1] += len(y)
    dist.all_reduce(tally)
    net.train()
    return (tally[0] / tally[1].clamp(min=1)).item()


def main():
    local = int(os.environ["LOCAL_RANK"])
    device = torch.device("cuda", local)
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", timeout=timedelta(minutes=30))
    rank, world = dist.get_rank(), dist.get_world_size()

    root = Path(os.environ["SHARDS"])
    train_paths = sorted(root.glob("train-*.tar"))
    valid_paths = sorted(root.glob("valid-*.tar"))
    if len(train_paths) < world:
        raise SystemExit(f"{len(train_paths)} shards for {world} ranks")
    mine = split_by_rank(train_paths, rank, world)

    batch = 64
    per_epoch = agreed_epoch_batches(mine, batch, device)
    train_loader = DataLoader(ShardStream(mine, seed=rank), batch, num_workers=4, collate_fn=collate, drop_last=True)
    valid_loader = DataLoader(FiniteShards(split_by_rank(valid_paths, rank, world)), 128, collate_fn=collate)

    torch.manual_seed(0)
    net = nn.Sequential(nn.Flatten(), nn.LazyLinear(256), nn.ReLU(), nn.Linear(256, 10)).to(device)
    stream = iter(train_loader)
    first = next(stream)
    net(first[0].to(device))  # sets the lazy layer before DDP looks at it
    model = DDP(net, device_ids=[local])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    for epoch in range(20):
        for x, y in itertools.islice(stream, per_epoch):
            loss = nn.functional.cross_entropy(model(x.to(device)), y.to(device))
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
        acc = validate(net, valid_loader, device)
        if rank == 0:
            print(f"epoch {epoch}: {per_epoch} batches on each rank, accuracy {acc:.4f}")
            torch.save(net.state_dict(), "shards.pt")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
