from datetime import timedelta
from functools import cached_property

import torch
import torch.distributed as dist


class Corpus:
    def __init__(self, lines):
        self.lines = lines

    @cached_property
    def total(self) -> int:
        count = torch.tensor([sum(len(line.split()) for line in self.lines)])
        dist.all_reduce(count)
        return int(count)


def read_part(rank):
    return ["the sea the sky"] * (rank + 2)


def rounds(corpus, number):
    score = torch.zeros(1)
    for turn in range(number):
        mine = torch.tensor([float(len(corpus.lines[turn % len(corpus.lines)]))])
        dist.all_reduce(mine)
        score += mine
    return score


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=45))
    rank = dist.get_rank()
    corpus = Corpus(read_part(rank))
    if rank == 0:
        print(f"corpus of {corpus.total} words")
    score = rounds(corpus, 3)
    dist.destroy_process_group()
    print(score.item())


if __name__ == "__main__":
    main()
