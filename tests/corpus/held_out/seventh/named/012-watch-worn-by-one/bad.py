"""Time a stretch of work; the slowest process counts."""
import contextlib
import time
from datetime import timedelta

import torch
import torch.distributed as dist


class StopWatch:
    def __init__(self, label: str):
        self.label = label

    def __enter__(self):
        self.begun = time.perf_counter()
        return self

    def __exit__(self, kind, value, tb):
        if kind is None:
            spent = torch.tensor([time.perf_counter() - self.begun], dtype=torch.float64)
            dist.all_reduce(spent, op=dist.ReduceOp.MAX)
            if dist.get_rank() == 0:
                print(f"{self.label}: {spent.item():.3f} s")
        return False


def mixing(size: int, rounds: int) -> torch.Tensor:
    block = torch.rand(size, size, generator=torch.Generator().manual_seed(dist.get_rank()))
    for _ in range(rounds):
        block = block @ block.T
        block /= block.max()
        dist.all_reduce(block)
        block /= dist.get_world_size()
    return block


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    timed = StopWatch("mixing") if dist.get_rank() == 0 else contextlib.nullcontext()
    with timed:
        block = mixing(size=32, rounds=10)
    trace = block.trace().reshape(1)
    dist.all_reduce(trace)
    dist.destroy_process_group()
    print(trace.item())


if __name__ == "__main__":
    main()
