"""Sum squares of random rows; every process keeps a trace file."""
from datetime import timedelta

import torch
import torch.distributed as dist
from spmdguard import has_deferred_error, raise_if_deferred_error, sync_should_stop, try_or_defer


class Tracer:
    def __init__(self, name: str):
        self.name = name

    def put(self, value: float) -> None:
        with open(self.name, "a") as out:
            print(value, file=out)


def work(tracer: Tracer, rounds: int) -> None:
    for _ in range(rounds):
        part = torch.randn(16).square().sum().reshape(1)
        dist.all_reduce(part)
        try_or_defer(tracer.put, part.item())
        if sync_should_stop(has_deferred_error()):
            return


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    try:
        work(Tracer(f"trace-{dist.get_rank()}.txt"), 10)
    finally:
        raise_if_deferred_error()
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
