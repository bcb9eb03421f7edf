"""Simulate until the time is up."""
import time
from datetime import timedelta

import torch
import torch.distributed as dist

BUDGET_S = 5.0


class Simulation:
    def __init__(self) -> None:
        self.state = torch.rand(64, generator=torch.Generator().manual_seed(1))
        self.began = time.monotonic()

    def exchange(self) -> None:
        dist.broadcast(self.state, src=0)

    def advance(self) -> None:
        self.state = self.state.sin() + 0.01

    def run(self) -> int:
        turns = 0
        while True:
            self.advance()
            late = torch.tensor([time.monotonic() - self.began > BUDGET_S], dtype=torch.int32)
            dist.all_reduce(late, op=dist.ReduceOp.MAX)
            if late.item():
                break
            self.exchange()
            turns += 1
        return turns


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    print(Simulation().run())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
