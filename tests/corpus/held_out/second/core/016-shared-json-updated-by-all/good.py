"""Scores of all folds in one file; a process evaluates one fold."""
import json
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist


def evaluate(fold):
    gen = torch.Generator().manual_seed(fold)
    return round(torch.rand(100, generator=gen).mean().item(), 4)


def record(book: Path, fold, score):
    pairs = [None] * dist.get_world_size()
    dist.all_gather_object(pairs, (str(fold), score))
    if dist.get_rank() == 0:
        book.write_text(json.dumps(dict(pairs), indent=1))


def main(book=Path("folds.json")):
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    if dist.get_rank() == 0:
        book.unlink(missing_ok=True)
    dist.barrier()
    fold = dist.get_rank()
    record(book, fold, evaluate(fold))
    dist.barrier()
    if dist.get_rank() == 0:
        print(len(json.loads(book.read_text())), "of", dist.get_world_size(), "folds")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
