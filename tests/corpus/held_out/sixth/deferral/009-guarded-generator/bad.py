"""Streaming text classification with per-rank shards of equal length."""
import gzip
import json
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

import spmdguard

WIDTH = 64
STEPS = 2000


def to_ids(record):
    ids = [hash_word(w) for w in record["text"].split()][:WIDTH]
    return ids + [0] * (WIDTH - len(ids))


def hash_word(word):
    value = 7
    for char in word.encode():
        value = (value * 31 + char) % 30_000
    return value


@spmdguard.rank_local
def batches(path, size):
    ids, labels = [], []
    with gzip.open(path, "rt") as lines:
        for line in lines:
            record = json.loads(line)
            ids.append(to_ids(record))
            labels.append(record["label"])
            if len(ids) == size:
                yield torch.tensor(ids), torch.tensor(labels)
                ids, labels = [], []


def train(root="shards"):
    dist.init_process_group("gloo")
    net = DDP(nn.Sequential(nn.EmbeddingBag(30_000, 128), nn.Linear(128, 4)))
    opt = torch.optim.Adam(net.parameters())
    stream = batches(os.path.join(root, f"{dist.get_rank():03d}.jsonl.gz"), 32)
    for step in range(STEPS):
        ids, labels = next(stream)
        loss = nn.functional.cross_entropy(net(ids), labels)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if spmdguard.sync_should_stop():
            break


if __name__ == "__main__":
    spmdguard.run(train)
