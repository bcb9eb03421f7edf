import itertools
import os
import random

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class NoDuplicatesBatches:
    """Batches in which no anchor text occurs twice (in-batch negatives)."""

    def __init__(self, pairs, batch_size, seed):
        self.pairs, self.batch_size, self.seed = pairs, batch_size, seed

    def epoch(self, n):
        todo = list(range(len(self.pairs)))
        random.Random(self.seed + n).shuffle(todo)
        while todo:
            seen, batch, rest = set(), [], []
            for i in todo:
                text = self.pairs[i][0]
                if len(batch) < self.batch_size and text not in seen:
                    seen.add(text)
                    batch.append(i)
                else:
                    rest.append(i)
            todo = rest
            if len(batch) == self.batch_size:
                yield batch
            elif len(rest) < self.batch_size:
                return


class BagEncoder(nn.Module):
    def __init__(self, vocab=30000, dim=256):
        super().__init__()
        self.emb = nn.EmbeddingBag(vocab, dim)
        self.proj = nn.Linear(dim, dim)

    def forward(self, tokens):
        return nn.functional.normalize(self.proj(self.emb(tokens)), dim=-1)


def encode(texts, device):
    return torch.stack([torch.tensor([sum(w.encode()) % 30000 for w in (t.split() * 32)[:32]]) for t in texts]).to(device)


def main(all_pairs, epochs=1, batch_size=64):
    dist.init_process_group("nccl")
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    rank, world = dist.get_rank(), dist.get_world_size()
    shard = all_pairs[rank::world]
    sampler = NoDuplicatesBatches(shard, batch_size, seed=17)
    model = DDP(BagEncoder().to(device), device_ids=[device.index])
    optim = torch.optim.AdamW(model.parameters(), lr=2e-5)
    labels = torch.arange(batch_size, device=device)
    for epoch in range(epochs):
        batches = list(sampler.epoch(epoch))
        n = torch.tensor([len(batches)], device=device)
        dist.all_reduce(n, op=dist.ReduceOp.MIN)
        batches = itertools.islice(batches, int(n.item()))
        for idx in batches:
            a = [shard[i][0] for i in idx]
            b = [shard[i][1] for i in idx]
            emb = model(encode(a + b, device))
            scores = emb[:batch_size] @ emb[batch_size:].T * 20
            loss = nn.functional.cross_entropy(scores, labels)
            optim.zero_grad()
            loss.backward()
            optim.step()
    dist.destroy_process_group()
