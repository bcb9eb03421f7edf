import gzip
import json
import os
import shutil
from contextlib import contextmanager
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.utils.data import Dataset


class LongBarrier:
    """A barrier whose timeout is days, for work that takes longer than the collective timeout."""

    def __init__(self):
        self.group = None

    def __call__(self):
        if self.group is not None:
            dist.monitored_barrier(group=self.group, timeout=timedelta(days=10))

    def __enter__(self):
        if dist.is_available() and dist.is_initialized():
            self.group = dist.new_group(backend="gloo", timeout=timedelta(days=10))
        return self

    def __exit__(self, exc_type, exc, tb):
        if exc_type is None:
            self()
        if self.group is not None:
            dist.destroy_process_group(self.group)


@contextmanager
def rank_zero_first():
    rank = dist.get_rank() if dist.is_initialized() else 0
    with LongBarrier() as barrier:
        if rank > 0:
            barrier()
        yield
        if rank == 0:
            barrier()


class Corpus(Dataset):
    def __init__(self, source: str, cache: str):
        if not os.path.exists(cache):
            with gzip.open(source, "rt") as f:
                rows = [json.loads(line)["ids"][:512] for line in f]
            torch.save(rows, cache + ".part")
            shutil.move(cache + ".part", cache)
        self.rows = torch.load(cache)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return torch.tensor(self.rows[i])


def main():
    dist.init_process_group("nccl", timeout=timedelta(minutes=5))
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    with rank_zero_first():
        corpus = Corpus("/shared/corpus.jsonl.gz", "/shared/corpus.cache.pt")
    sampler = torch.utils.data.DistributedSampler(corpus, drop_last=True)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.EmbeddingBag(50_000, 64).cuda())
    for i in list(sampler)[:1000]:
        model(corpus[i][None].cuda()).square().mean().backward()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
