"""Count tokens over all shards of a corpus."""
import argparse
from collections import Counter
from pathlib import Path

import torch
import torch.distributed as dist
from spmdguard import deferring, sync_should_stop


def count(path: Path, into: Counter) -> None:
    with path.open(encoding="utf-8") as f:
        for line in f:
            into.update(line.split())


def total(number: int) -> int:
    t = torch.tensor([number])
    dist.all_reduce(t)
    return int(t.item())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rounds", type=int, default=10)
    args = parser.parse_args()
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    words: Counter = Counter()
    for turn in range(args.rounds):
        with deferring("read shard"):
            count(args.folder / f"part-{turn * size + rank:05d}.txt", words)
        seen = total(sum(words.values()))
        if rank == 0:
            print(f"round {turn}: {seen} words")
        if sync_should_stop():
            break
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
