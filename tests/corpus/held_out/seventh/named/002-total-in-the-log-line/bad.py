"""Count tokens per process and print the sum at the end."""
import functools
from datetime import timedelta

import torch
import torch.distributed as dist


class Ledger:
    def __init__(self):
        self.tokens = 0
        self.documents = 0

    def book(self, text: str) -> None:
        self.tokens += len(text.split())
        self.documents += 1

    @functools.cached_property
    def total(self) -> tuple[int, int]:
        pair = torch.tensor([self.tokens, self.documents])
        dist.all_reduce(pair)
        return int(pair[0]), int(pair[1])

    def __str__(self) -> str:
        tokens, documents = self.total
        return f"{tokens} tokens in {documents} documents"


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    rank = dist.get_rank()
    ledger = Ledger()
    for number in range(rank + 1):
        ledger.book("word " * (number + 3))
    if rank == 0:
        print(f"done: {ledger}")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
