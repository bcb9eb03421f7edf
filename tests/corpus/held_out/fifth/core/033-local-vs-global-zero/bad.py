"""Tokenise once per node into node-local scratch, then train on all nodes."""
import os
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


class Env:
    def __init__(self):
        self.rank = int(os.environ["RANK"])
        self.local_rank = int(os.environ["LOCAL_RANK"])
        self.world_size = int(os.environ["WORLD_SIZE"])

    @property
    def is_main(self):
        return self.rank == 0

    @property
    def is_local_main(self):
        return self.local_rank == 0


def tokenise(text_file, cache, length):
    data = torch.frombuffer(bytearray(Path(text_file).read_bytes()), dtype=torch.uint8)
    rows = data[: data.numel() // length * length].view(-1, length)
    tmp = cache.with_suffix(f".{os.getpid()}")
    torch.save(rows.clone(), tmp)
    os.replace(tmp, cache)


def prepare(env, text_file, scratch, length=129):
    cache = Path(scratch) / f"tokens_{length}.pt"
    if not env.is_local_main:
        dist.barrier()
    if env.is_local_main and not cache.exists():
        cache.parent.mkdir(parents=True, exist_ok=True)
        tokenise(text_file, cache, length)
    if env.is_main:
        dist.barrier()
    return TensorDataset(torch.load(cache).long())


class ByteModel(nn.Module):
    def __init__(self, dim=256):
        super().__init__()
        self.embed = nn.Embedding(256, dim)
        self.rnn = nn.GRU(dim, dim, num_layers=2, batch_first=True)
        self.out = nn.Linear(dim, 256)

    def forward(self, x):
        return self.out(self.rnn(self.embed(x))[0])


def main():
    env = Env()
    torch.cuda.set_device(env.local_rank)
    dist.init_process_group("nccl")
    dataset = prepare(env, os.environ["TEXT"], os.environ.get("SCRATCH", "/scratch/tok"))
    sampler = DistributedSampler(dataset)
    loader = DataLoader(dataset, batch_size=32, sampler=sampler, drop_last=True)
    model = DDP(ByteModel().cuda(), device_ids=[env.local_rank])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for i, (rows,) in enumerate(loader):
            rows = rows.cuda()
            logits = model(rows[:, :-1])
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if env.is_main and i % 100 == 0:
                print(f"{epoch}:{i} {loss.item():.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
