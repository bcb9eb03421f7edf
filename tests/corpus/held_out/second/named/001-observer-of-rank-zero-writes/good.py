"""Online mean with observers that are told about every step."""
import csv
from datetime import timedelta
from typing import Callable

import torch
import torch.distributed as dist
from spmdguard import has_deferred_error, raise_if_deferred_error, sync_should_stop, try_or_defer

Observer = Callable[[int, float], None]


class CsvObserver:
    def __init__(self, path: str):
        self.path = path

    def __call__(self, step: int, value: float) -> None:
        with open(self.path, "a", newline="") as out:
            csv.writer(out).writerow([step, value])


class Subject:
    def __init__(self) -> None:
        self.observers: list[Observer] = []

    def tell(self, step: int, value: float) -> None:
        for observer in self.observers:
            try_or_defer(observer, step, value)


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    subject = Subject()
    if dist.get_rank() == 0:
        subject.observers.append(CsvObserver("mean.csv"))
    gen = torch.Generator().manual_seed(dist.get_rank())
    for step in range(100):
        value = torch.rand(1, generator=gen)
        dist.all_reduce(value)
        subject.tell(step, value.item() / dist.get_world_size())
        if sync_should_stop(has_deferred_error()):
            break
    dist.barrier()
    dist.destroy_process_group()
    raise_if_deferred_error()


if __name__ == "__main__":
    main()
