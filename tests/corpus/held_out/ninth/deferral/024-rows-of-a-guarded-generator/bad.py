"""Running mean of numbers that each process reads from its own file."""
from datetime import timedelta

import torch
import torch.distributed as dist
from spmdguard import has_deferred_error, raise_if_deferred_error, rank_local, sync_should_stop

ROUNDS = 20


@rank_local
def numbers(path: str):
    with open(path) as f:
        for _ in range(ROUNDS):
            yield float(f.readline())


def running_mean(path: str) -> list[float]:
    means = []
    for value in numbers(path):
        total = torch.tensor([value])
        dist.all_reduce(total)
        means.append(total.item() / dist.get_world_size())
        if sync_should_stop(has_deferred_error()):
            break
    return means


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    means = running_mean(f"numbers-{dist.get_rank()}.txt")
    dist.barrier()
    dist.destroy_process_group()
    raise_if_deferred_error()
    print(means[-1])


if __name__ == "__main__":
    main()
