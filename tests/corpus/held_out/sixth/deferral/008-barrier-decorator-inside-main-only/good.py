"""Byte-pair vocabulary is built once, then read by everybody."""
import collections
import functools
import json
import os
import pathlib

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import spmdguard

VOCAB = pathlib.Path("cache/vocab.json")


def then_meet(fn):
    """All ranks wait for one another after fn."""
    @functools.wraps(fn)
    def inner(*args, **kwargs):
        result = fn(*args, **kwargs)
        dist.barrier()
        return result
    return inner


@then_meet
@spmdguard.rank_local(only="main")
def build_vocab(corpus, size):
    counts = collections.Counter()
    for file in sorted(pathlib.Path(corpus).glob("*.txt")):
        counts.update(file.read_text().split())
    VOCAB.parent.mkdir(exist_ok=True)
    VOCAB.write_text(json.dumps([w for w, _ in counts.most_common(size)]))


def train(corpus="corpus", size=8000):
    dist.init_process_group("gloo")
    build_vocab(corpus, size)
    if spmdguard.sync_should_stop():
        return
    vocab = json.loads(VOCAB.read_text())
    model = DistributedDataParallel(nn.EmbeddingBag(len(vocab), 64))
    opt = torch.optim.SGD(model.parameters(), lr=0.5)
    for _ in range(500):
        ids = torch.randint(len(vocab), (16, 12))
        loss = model(ids).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        if spmdguard.sync_should_stop():
            break


if __name__ == "__main__":
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    spmdguard.run(train)
