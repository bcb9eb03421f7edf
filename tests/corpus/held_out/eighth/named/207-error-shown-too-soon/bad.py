"""Shrink a vector and keep a log of it, then compare the ends."""
from datetime import timedelta

import torch
import torch.distributed as dist
from spmdguard import raise_if_deferred_error, rank_local, sync_should_stop


class Journal:
    def __init__(self, name):
        self.name = name

    @rank_local(only="main")
    def note(self, step, norm):
        with open(self.name, "a", encoding="utf-8") as f:
            f.write(f"{step} {norm}\n")


def shrink(journal, rounds):
    vector = torch.full((10,), 1.0 + dist.get_rank())
    for turn in range(rounds):
        dist.all_reduce(vector)
        vector /= 2 * dist.get_world_size()
        journal.note(turn, vector.norm().item())
        if sync_should_stop():
            break
    return vector


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    vector = shrink(Journal("logs/journal.txt"), rounds=8)
    raise_if_deferred_error()
    dist.all_reduce(vector, op=dist.ReduceOp.MAX)
    dist.destroy_process_group()
    print(vector.sum().item())


if __name__ == "__main__":
    main()
