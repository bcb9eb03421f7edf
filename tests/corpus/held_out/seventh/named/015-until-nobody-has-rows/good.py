"""Work through row stores of different length until all of them are empty."""
from datetime import timedelta

import torch
import torch.distributed as dist


class Store:
    def __init__(self, rows: torch.Tensor):
        self.rows = rows
        self.next = 0

    @property
    def left(self) -> int:
        return len(self.rows) - self.next

    def take(self, count: int) -> torch.Tensor:
        part = self.rows[self.next : self.next + count]
        self.next += len(part)
        return part


def anyone_has(store: Store) -> bool:
    most = torch.tensor([store.left])
    dist.all_reduce(most, op=dist.ReduceOp.MAX)
    return bool(most.item())


def drain(store: Store) -> torch.Tensor:
    total = torch.zeros(3)
    while anyone_has(store):
        if store.left:
            part = store.take(4).sum(0)
        else:
            part = torch.zeros(3)
        dist.all_reduce(part)
        total += part
    return total


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    rank = dist.get_rank()
    store = Store(torch.ones(5 + 3 * rank, 3))
    total = drain(store)
    dist.destroy_process_group()
    print(total.tolist())


if __name__ == "__main__":
    main()
