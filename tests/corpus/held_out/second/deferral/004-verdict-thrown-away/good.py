from datetime import timedelta

import torch
import torch.distributed as dist
from spmdguard import (
    has_deferred_error,
    is_main_process,
    raise_if_deferred_error,
    sync_should_stop,
    try_or_defer,
)


class Sampler:
    def __init__(self, size: int, seed: int):
        self.gen = torch.Generator().manual_seed(seed + dist.get_rank())
        self.size, self.total = size, torch.zeros(2)

    def sweep(self) -> float:
        points = torch.rand(self.size, 2, generator=self.gen)
        self.total += torch.tensor([(points.norm(dim=1) < 1).sum().item(), self.size])
        both = self.total.clone()
        dist.all_reduce(both)
        return (4 * both[0] / both[1]).item()


def store(path: str, value: float) -> None:
    with open(path, "a") as out:
        print(f"{value:.6f}", file=out)


def estimate(sweeps: int) -> float:
    sampler, value = Sampler(10_000, seed=5), 0.0
    for _ in range(sweeps):
        value = sampler.sweep()
        if is_main_process():
            try_or_defer(store, "pi.txt", value)
        if sync_should_stop(has_deferred_error()):
            break
    return value


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    value = estimate(sweeps=5000)
    dist.barrier()
    dist.destroy_process_group()
    raise_if_deferred_error()
    print(value)


if __name__ == "__main__":
    main()
